import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules', '**/node_modules', 'data', 'coverage', '**/assembly'] },
  ...tseslint.configs.recommended,
  {
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      // `Promise.race` and `Promise.any` add reactions to every promise that they are given. Called in a loop with one promise that lives on, they
      // add more each time, and none is freed.
      'no-restricted-properties': [
        'error',
        ...['race', 'any'].map((property) => ({
          object: 'Promise',
          property,
          message: 'Use orDeadline, or a new Promise that what comes first resolves.',
        })),
      ],
    },
  },
  {
    // Whatever reads bytes from outside does so in linear time.
    files: ['agents/**', 'engine/**', 'server/**'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-move': ['error', { report: 'potential' }] },
  },
  {
    files: ['**/*.ts', '**/*.tsx'],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
);

import { usePage } from './viewer-context.js';

/** The form for the token that requests are sent with. */
export function TokenForm({ done }: { readonly done: () => void }) {
  const { viewer, screen } = usePage();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement).get('token');
    viewer.token.set(typeof given === 'string' ? given : undefined);
    screen.close();
    done();
  };
  return (
    <form class="token-form" onSubmit={submit}>
      <label>
        Token
        <input name="token" type="password" autocomplete="off" spellcheck={false} class="input" />
      </label>
      <button class="button is-main">Use it</button>
      <p class="hint">It is sent with each request, and forgotten when this tab is closed.</p>
    </form>
  );
}

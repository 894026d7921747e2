import type { Failure } from '../api/failure.js';
import { TokenForm } from './token-form.js';

interface NoticeProps {
  readonly failure: Failure;
  readonly again: () => void;
  /** Between records rather than in their place. */
  readonly isSmall?: boolean;
}

/** What went wrong, what was said of it, and what one can do. */
export function FailureNotice({ failure, again, isSmall = false }: NoticeProps) {
  const { kind, title, detail, advice } = failure;
  return (
    <div class={isSmall ? 'notice is-small' : 'notice'} role="alert">
      <strong class="notice-title">{title}</strong>
      <p class="notice-detail">{detail}</p>
      <p>{advice}</p>
      {kind === 'token' || kind === 'forbidden' ? (
        <TokenForm done={again} />
      ) : (
        <button type="button" class="button is-outlined" onClick={again}>
          Ask again
        </button>
      )}
    </div>
  );
}

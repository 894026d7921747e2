import type { Failure } from '../api/failure.js';
import { shortened } from '../query/time-range.js';
import { TokenForm } from './token-form.js';
import { usePage } from './viewer-context.js';

interface NoticeProps {
  readonly failure: Failure;
  readonly again: () => void;
  /** Whether the notice is shown between records instead of in place of them. */
  readonly isSmall?: boolean;
}

/** A text in which parts between backticks are shown as code. */
function WithCode({ text }: { readonly text: string }) {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code key={i}>{part}</code> : part))}</>;
}

function ShorterRange() {
  const { viewer } = usePage();
  const shorten = (): void =>
    viewer.change({ range: shortened(viewer.view.peek().range, viewer.extent.peek()), cursor: undefined });
  return (
    <button type="button" class="button is-main" onClick={shorten}>
      The newest tenth of the time
    </button>
  );
}

/** Shows a failure: its title, the reported detail, and advice. */
export function FailureNotice({ failure, again, isSmall = false }: NoticeProps) {
  const { kind, title, detail, advice } = failure;
  const isTooMuch = kind === 'reading' || kind === 'timeout';
  return (
    <div class={isSmall ? 'notice is-small' : 'notice'} role="alert">
      <strong class="notice-title">{title}</strong>
      <p class="notice-detail">{detail}</p>
      <p>
        <WithCode text={advice} />
      </p>
      {kind === 'token' || kind === 'refused' || kind === 'forbidden' ? (
        <TokenForm done={again} />
      ) : (
        <div class="form-line">
          {isTooMuch && !isSmall && <ShorterRange />}
          <button type="button" class="button is-outlined" onClick={again}>
            Ask again
          </button>
        </div>
      )}
    </div>
  );
}

import { FailureNotice } from '../parts/failure-notice.js';
import { usePage } from '../parts/viewer-context.js';
import { widened } from '../query/time-range.js';
import { shortTimeText } from '../records/time-text.js';

function EmptyArchive() {
  const { viewer } = usePage();
  const { agent } = viewer.view.value;
  return (
    <>
      <strong class="notice-title">Nothing is stored for {agent} yet</strong>
      <p>
        Load what is there: <code>logstrata load {agent} FILE…</code>, or have <code>logstrata serve</code>{' '}
        follow the log that its file names. <code>logstrata check {agent}</code> says what becomes of a line.
      </p>
      <button type="button" class="button is-outlined" onClick={() => viewer.askAgain()}>
        Ask again
      </button>
    </>
  );
}

function NoMatch() {
  const { viewer } = usePage();
  const { filters, text, range } = viewer.view.value;
  const zone = viewer.preferences.zone.value;
  const records = viewer.recordsExtent.value;
  const last = filters.at(-1);
  return (
    <>
      <strong class="notice-title">Nothing matches</strong>
      {records !== undefined && (
        <p>
          There are records from {shortTimeText(records.sinceMs, zone)} to{' '}
          {shortTimeText(records.untilMs, zone)}.
        </p>
      )}
      <div class="form-line">
        {range.kind !== 'all' && (
          <>
            <button
              type="button"
              class="button is-outlined"
              onClick={() => viewer.change({ range: widened(viewer.extent.value) })}
            >
              Wider range
            </button>
            <button
              type="button"
              class="button is-outlined"
              onClick={() => viewer.change({ range: { kind: 'all' } })}
            >
              All time
            </button>
          </>
        )}
        {text !== '' && (
          <button type="button" class="button is-outlined" onClick={() => viewer.change({ text: '' })}>
            Without the text
          </button>
        )}
        {last !== undefined && (
          <button
            type="button"
            class="button is-outlined"
            onClick={() => viewer.change({ filters: filters.slice(0, -1) })}
          >
            Without the last filter
          </button>
        )}
      </div>
    </>
  );
}

/** Shown in place of records: why there are none, and what the user can do. */
export function NoRecords() {
  const { viewer } = usePage();
  const { failure: general, names, fields } = viewer.agents.value;
  const state = viewer.window.state.value;
  const failure = general ?? state.failure;
  if (failure !== undefined)
    return (
      <div class="no-records">
        <FailureNotice failure={failure} again={() => viewer.askAgain()} />
      </div>
    );
  if (names?.length === 0)
    return (
      <div class="no-records">
        <div class="notice">
          <strong class="notice-title">There is no agent yet</strong>
          <p>
            An agent is a YAML file that says what a log’s lines become. Put one into the agents’ folder, and
            the server finds it at SIGHUP, or at its next start.
          </p>
        </div>
      </div>
    );
  if (state.status === 'loading' || fields === undefined) return <div class="no-records hint">asking…</div>;
  const { filters, text, range, isContext } = viewer.view.value;
  const isAsking = filters.length > 0 || text !== '' || range.kind !== 'all';
  return (
    <div class="no-records">
      <div class="notice">{isAsking && !isContext ? <NoMatch /> : <EmptyArchive />}</div>
    </div>
  );
}

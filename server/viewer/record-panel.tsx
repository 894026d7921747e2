import { useEffect, useState } from 'preact/hooks';
import { AgentName } from './agents-menu.js';
import { Button, CloseButton, ColumnToggle, useValueToggles, usePage, MarkedText } from './parts.js';
import { isSearched, type Field } from './state/field.js';
import { requestPath, searchedField } from './state/view.js';
import {
  isJsonTree,
  prettyJson,
  shownText,
  valueText,
  type LogRecord,
  type Value,
  cursorBefore,
  isSameRecord,
  ownCursor,
} from './state/record.js';
import { searchNeedles } from './state/search.js';
import { timeText } from './state/texts.js';
import { recordBy } from './state/record-window.js';

/** A shell command that requests exactly this record. */
function curlOf(agent: string, cursor: string, hasToken: boolean): string {
  const path = requestPath('query', { agent, parameters: [] }, [
    ['after', cursorBefore(cursor)],
    ['limit', '1'],
  ]);
  const token = hasToken ? ' -H "Authorization: Bearer $LOGSTRATA_TOKEN"' : '';
  return `curl${token} '${location.origin}${path}'`;
}

function ShownValue({ field, value }: { readonly field: Field; readonly value: Value }) {
  const { viewer } = usePage();
  if (value === null) return <span class="null">no value</span>;
  if (field.type === 'time' && typeof value === 'number')
    return (
      <>
        {timeText(value, viewer.preferences.zone.value)} <span class="hint">{String(value)}</span>
      </>
    );
  if (value === '') return <span class="null">(empty)</span>;
  const text = shownText(valueText(value));
  const view = viewer.view.value;
  const isMarked = isSearched(field, searchedField(view, viewer.fields.value));
  const needles = isMarked ? searchNeedles(view.text) : [];
  if (typeof value === 'string' && isJsonTree(text))
    return (
      <pre class="json">
        <MarkedText text={prettyJson(text)} needles={needles} />
      </pre>
    );
  return (
    <span class="value-text">
      <MarkedText text={text} needles={needles} />
    </span>
  );
}

function FieldLine({ field, value }: { readonly field: Field; readonly value: Value }) {
  const { screen } = usePage();
  const text = valueText(value);
  const { want, leaveOut } = useValueToggles(field, text);
  const tools = [
    ['only', 'Only this', 'Filter for', want],
    ['without', 'Without this', 'Filter out', leaveOut],
    ['copy', 'Copy', 'Copy', () => void screen.copy(text, field.name)],
  ] as const;
  return (
    <div class="record-field">
      <dt title={field.description ?? field.type}>{field.name}</dt>
      <dd>
        <ShownValue field={field} value={value} />
        <span class="record-tools">
          {value !== null &&
            tools.map(([icon, what, title, act]) => (
              <Button
                key={icon}
                look="bare"
                icon={icon}
                label={`${what} ${field.name}`}
                title={title}
                onClick={act}
              />
            ))}
          <ColumnToggle name={field.name} />
        </span>
      </dd>
    </div>
  );
}

function RecordActions({ record }: { readonly record: LogRecord }) {
  const { viewer, screen } = usePage();
  const { isContext } = viewer.view.value;
  const agent = viewer.agentOfRecord();
  const hasToken = viewer.token.token.value !== undefined;
  const curl = (): string => curlOf(agent, ownCursor(record.cursor), hasToken);
  const copies = [
    ['copy', 'JSON', 'JSON', 'Copy as JSON', 'JSON', () => record.line],
    ['copy', 'curl', 'curl command', 'Copy as a curl command', 'curl command', curl],
    ['link', 'link', 'link', 'Copy a link to this record (y)', 'Link', () => location.href],
  ] as const;
  return (
    <div class="record-actions">
      <Button
        look="outlined"
        icon="context"
        isPressed={isContext}
        title="The records around it, without filters (c)"
        onClick={() => viewer.change({ isContext: !isContext, isLive: false })}
      >
        Context
      </Button>
      {copies.map(([icon, word, what, title, told, read]) => (
        <Button
          key={word}
          look="outlined"
          icon={icon}
          label={`Copy ${what}`}
          title={title}
          onClick={() => void screen.copy(read(), told)}
        >
          {word}
        </Button>
      ))}
    </div>
  );
}

/** The open record. It is kept when the window moves away from it. */
function useOpenRecord(): LogRecord | undefined {
  const { viewer } = usePage();
  const { cursor } = viewer.view.value;
  const state = viewer.window.state.value;
  const [kept, keep] = useState<LogRecord | undefined>(undefined);
  const found = cursor === undefined ? undefined : recordBy(state, cursor);
  useEffect(() => {
    if (found !== undefined) keep(found);
  }, [found]);
  const isKept = kept !== undefined && cursor !== undefined && isSameRecord(kept.cursor, cursor);
  return found ?? (isKept ? kept : undefined);
}

/** The panel with the open record: all fields in full, and actions on it. */
export function RecordPanel() {
  const { viewer } = usePage();
  const { cursor } = viewer.view.value;
  const agent = viewer.agentOfRecord();
  const record = useOpenRecord();
  const [isJson, setJson] = useState(false);
  if (cursor === undefined) return null;
  const close = (): void => viewer.change({ cursor: undefined, isContext: false });
  const isLoading = viewer.window.state.value.status === 'loading';
  return (
    <aside class="record-panel" aria-label="Record">
      <div class="pane-head">
        <h2>
          <AgentName name={agent} /> <code class="cursor">{ownCursor(cursor)}</code>
        </h2>
        <Button look="bare" isPressed={isJson} onClick={() => setJson(!isJson)}>
          {isJson ? 'As fields' : 'As JSON'}
        </Button>
        <CloseButton what="the record" shortcut="Escape" close={close} />
      </div>
      {record === undefined ? (
        <p class="hint">
          {isLoading
            ? '…'
            : 'There is no record at this place, or the filters exclude it. Retention may have removed it.'}
        </p>
      ) : (
        <>
          <RecordActions record={record} />
          {isJson ? (
            <pre class="json is-whole" tabIndex={0}>
              {prettyJson(record.line)}
            </pre>
          ) : (
            <dl class="record-fields">
              {viewer.fields.value
                .filter(({ lackedBy }) => lackedBy?.includes(agent) !== true)
                .map((field) => (
                  <FieldLine key={field.name} field={field} value={record.values.get(field.name) ?? null} />
                ))}
            </dl>
          )}
        </>
      )}
    </aside>
  );
}

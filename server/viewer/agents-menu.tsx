import { useState } from 'preact/hooks';
import { Button, Icon, Menu, usePage } from './parts.js';
import { countText } from './state/texts.js';
import { agentsMax, type View } from './state/view.js';

/** Maximum number of agents in the list: more are found faster by their name. */
const listedMax = 100;

/** Degrees between the hues of two agents. By the golden angle, few agents are far apart, and many still differ. */
const hueStep = 137.5;

/** The name of an agent; where there are several, with a mark in its colour. */
export function AgentName({ name }: { readonly name: string }) {
  const names = usePage().viewer.agentNames.value;
  const hue = (30 + names.indexOf(name) * hueStep) % 360;
  return (
    <>
      {names.length > 1 && names.includes(name) && (
        <span
          class="swatch agent-mark"
          aria-hidden="true"
          style={{ background: `oklch(0.65 0.15 ${hue})` }}
        />
      )}
      {name}
    </>
  );
}

function AgentList() {
  const { viewer, screen } = usePage();
  const chosen = viewer.agentNames.value;
  const [draft, setDraft] = useState(chosen);
  const [searchText, setSearchText] = useState('');
  const text = searchText.toLowerCase();
  const known = (viewer.agents.value.names ?? []).filter((name) => !chosen.includes(name));
  const found = [...chosen, ...known].filter((name) => name.toLowerCase().includes(text));
  const choose = (names: readonly string[], part: Partial<View> = {}): void => {
    screen.close();
    viewer.change({ ...part, agent: names.join(','), columns: [], cursor: undefined, isContext: false });
  };
  // Other agents have other fields.
  const ofFields = { textField: undefined, split: undefined, line: undefined };
  const only = (name = ''): void => choose([name], { filters: [], groups: [], text: '', ...ofFields });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (found.length > 0) only(found[0]);
  };
  return (
    <form class="views-menu" onSubmit={submit}>
      <input
        type="search"
        class="input"
        placeholder="Agents"
        aria-label="Agents whose name contains this"
        autocomplete="off"
        spellcheck={false}
        value={searchText}
        onInput={(event) => setSearchText(event.currentTarget.value)}
      />
      <ul class="view-list agent-list" aria-label="Agents">
        {found.slice(0, listedMax).map((name) => (
          <li key={name}>
            <input
              type="checkbox"
              aria-label={`Show ${name} with others`}
              checked={draft.includes(name)}
              disabled={draft.length >= agentsMax && !draft.includes(name)}
              onChange={({ currentTarget: { checked } }) =>
                setDraft(checked ? [...draft, name] : draft.filter((other) => other !== name))
              }
            />
            <Button title={`Only ${name}`} onClick={() => only(name)}>
              <AgentName name={name} />
            </Button>
          </li>
        ))}
      </ul>
      {found.length > listedMax && (
        <p class="hint">{countText(found.length - listedMax)} more: type a part of the name</p>
      )}
      {draft.length >= agentsMax && <p class="hint">at most {agentsMax} at once</p>}
      <Button look="main" disabled={draft.length === 0} onClick={() => choose(draft)}>
        Show {draft.length} together
      </Button>
    </form>
  );
}

/** The menu for the agents whose records are shown. */
export function AgentsMenu() {
  const names = usePage().viewer.agentNames.value;
  const button = (
    <>
      <AgentName name={names[0] ?? ''} />
      {names.length > 1 && <span class="count">+{names.length - 1}</span>}
      <Icon name="down" />
    </>
  );
  return (
    <Menu name="agents" class="agent-choice" button={button} label={`Agents: ${names.join(', ')} (a)`}>
      <AgentList />
    </Menu>
  );
}

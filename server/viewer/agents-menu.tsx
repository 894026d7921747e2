import { useState } from 'preact/hooks';
import { Icon, Menu, usePage } from './parts.js';
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
        <span class="swatch" aria-hidden="true" style={{ background: `oklch(0.65 0.15 ${hue})` }} />
      )}
      {name}
    </>
  );
}

/** The part of a view that other agents do not share. */
const otherAgents: Partial<View> = {
  filters: [],
  groups: [],
  text: '',
  textField: undefined,
  split: undefined,
  line: undefined,
};

function AgentList() {
  const { viewer, screen } = usePage();
  const chosen = viewer.agentNames.value;
  const [draft, setDraft] = useState(chosen);
  const [searchText, setSearchText] = useState('');
  const text = searchText.toLowerCase();
  const known = (viewer.agents.value.names ?? []).filter((name) => !chosen.includes(name));
  const found = [...chosen.filter((name) => name !== ''), ...known].filter((name) =>
    name.toLowerCase().includes(text),
  );
  const choose = (names: readonly string[], part: Partial<View> = {}): void => {
    screen.close();
    viewer.change({ ...part, agent: names.join(','), columns: [], cursor: undefined, isContext: false });
  };
  const only = (name: string): void => choose([name], otherAgents);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const [first] = found;
    if (text !== '' && first !== undefined) only(first);
    else choose(draft);
  };
  return (
    <form class="form-lines agents-menu" onSubmit={submit}>
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
      <ul class="agent-list" aria-label="Agents">
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
            <button type="button" class="button" title={`Only ${name}`} onClick={() => only(name)}>
              <AgentName name={name} />
            </button>
          </li>
        ))}
      </ul>
      {found.length > listedMax && (
        <p class="hint">{countText(found.length - listedMax)} more: type a part of the name</p>
      )}
      {found.length === 0 && <p class="hint">no agent has such a name</p>}
      {draft.length >= agentsMax && <p class="hint">at most {agentsMax} at once</p>}
      <button
        class="button is-main"
        type="button"
        disabled={draft.length === 0}
        onClick={() => choose(draft)}
      >
        {draft.length === 1 ? `Show ${draft[0]}` : `Show ${draft.length} together`}
      </button>
    </form>
  );
}

/** Maximum number of names on the button of the menu. */
const namesMax = 2;

/** The menu for the agents whose records are shown. */
export function AgentsMenu() {
  const names = usePage().viewer.agentNames.value;
  const shown = names.slice(0, namesMax);
  const button = (
    <>
      {shown.map((name) => (
        <span key={name} class="agent-name">
          <AgentName name={name} />
        </span>
      ))}
      {names.length > namesMax && <span class="count">+{names.length - namesMax}</span>}
      <Icon name="down" />
    </>
  );
  return (
    <Menu name="agents" class="agent-choice" button={button} label={`Agents: ${names.join(', ')} (a)`}>
      <AgentList />
    </Menu>
  );
}

import { useState } from 'preact/hooks';
import { failureOfError } from '../api/failure.js';
import { Icon } from '../parts/icon.js';
import { Menu } from '../parts/menu.js';
import { usePage } from '../parts/viewer-context.js';
import { countText } from '../records/count-text.js';
import { downloadPath, saveDownload, type DownloadForm } from '../state/download.js';

const limits = [1000, 10_000, 100_000, 1_000_000];

/** The menu to download the matching records as a file. */
export function DownloadMenu() {
  const { viewer, screen } = usePage();
  const [wrong, setWrong] = useState('');
  const { count } = viewer.histogram.state.value;
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const ask: DownloadForm = {
      format: form.get('format') === 'csv' ? 'csv' : 'jsonl',
      limit: Number(form.get('limit')),
      fields: form.get('fields') === 'all' ? undefined : viewer.columns.value.map(({ name }) => name),
    };
    setWrong('');
    try {
      await saveDownload(
        viewer.door,
        downloadPath(viewer.question(), ask),
        `${viewer.view.value.agent}.${ask.format}`,
      );
      screen.close();
    } catch (error) {
      const { title, detail } = failureOfError(error);
      setWrong(`${title}: ${detail}`);
    }
  };
  return (
    <Menu name="download" button={<Icon name="download" />} label="Download (d)" side="right">
      <form class="download-menu form-lines" onSubmit={(event) => void save(event)}>
        <p>
          {count === undefined ? 'Matching records' : `${countText(count)} records match`}, the oldest first
          in the file.
        </p>
        <label class="form-row">
          Form
          <select name="format">
            <option value="jsonl">JSON Lines</option>
            <option value="csv">CSV</option>
          </select>
        </label>
        <label class="form-row">
          Fields
          <select name="fields">
            <option value="shown">the columns of the table</option>
            <option value="all">all</option>
          </select>
        </label>
        <label class="form-row">
          At most
          <select name="limit" defaultValue="10000">
            {limits.map((limit) => (
              <option key={limit} value={limit} selected={limit === 10_000}>
                the newest {countText(limit)}
              </option>
            ))}
          </select>
        </label>
        {wrong !== '' && (
          <p class="wrong" role="alert">
            {wrong}
          </p>
        )}
        <button class="button is-main">Download</button>
      </form>
    </Menu>
  );
}

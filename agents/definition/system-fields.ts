import type { FieldDefinition } from './definition.js';
import type { FieldType } from '../../engine/index.js';

const machine: readonly (readonly [string, FieldType])[] = [
  ['time', 'time'],
  ['uptime', 'int'],
  ['la_1', 'float'],
  ['la_5', 'float'],
  ['la_15', 'float'],
  ['cpu_usage', 'float'],
  ['cpu_cores', 'int'],
  ['mem_usage', 'float'],
  ['mem_total', 'int'],
];

const disk: readonly (readonly [string, FieldType])[] = [
  ['disk_dev', 'string'],
  ['disk_usage', 'float'],
  ['disk_total', 'int'],
  ['disk_read_bytes', 'int'],
  ['disk_write_bytes', 'int'],
];

const net: readonly (readonly [string, FieldType])[] = [
  ['net_if', 'string'],
  ['net_rx_bytes', 'int'],
  ['net_tx_bytes', 'int'],
  ['net_rx_packets', 'int'],
  ['net_tx_packets', 'int'],
  ['net_rx_errors', 'int'],
  ['net_tx_errors', 'int'],
  ['net_rx_dropped', 'int'],
  ['net_tx_dropped', 'int'],
];

/** The fields that a `system` agent can report, in the order of its records where its file lists no fields. */
export function systemFields(reports: { readonly disk: boolean; readonly net: boolean }): FieldDefinition[] {
  const rows = [...machine, ...(reports.disk ? disk : []), ...(reports.net ? net : [])];
  return rows.map(([name, type]) => ({ name, type, source: name }));
}

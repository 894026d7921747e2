import { findZone, type Zone } from '../../agents/definition/zone.js';

const dayMs = 86_400_000;

/** A zone costs some 50 µs to find. A server has one, from its configuration, so this never grows. */
const zones = new Map<string, Zone>();

function zoneOf(name: string): Zone {
  let zone = zones.get(name);
  if (zone === undefined) {
    zone = findZone(name);
    zones.set(name, zone);
  }
  return zone;
}

/** Offset of a zone from UTC at an instant, in ms: positive in the east. Throws `invalid` for an unknown zone. */
export function zoneOffset(zoneName: string, instantMs: number): number {
  return zoneOf(zoneName).offsetAt(instantMs);
}

/**
 * The first instant (ms since the epoch) at which a clock in the zone shows `wallMs` or a later time; `wallMs` is the
 * wall-clock reading counted as if it were UTC. So a reading that comes twice when clocks go back is the earlier one,
 * and one that is skipped when they go forward is the moment of the change: windows that meet at it still meet, and a day
 * whose midnight is skipped begins where its clock begins.
 */
export function instantOfWallClock(zoneName: string, wallMs: number): number {
  const zone = zoneOf(zoneName);
  const instantMs = zone.instantOf(wallMs);
  if (instantMs + zone.offsetAt(instantMs) === wallMs) return instantMs;
  let below = instantMs - dayMs;
  let beyond = instantMs;
  while (beyond - below > 1) {
    const middle = Math.floor((below + beyond) / 2);
    if (middle + zone.offsetAt(middle) >= wallMs) beyond = middle;
    else below = middle;
  }
  return beyond;
}

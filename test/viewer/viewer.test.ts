import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';
import { askingVisits } from './asking-visits.js';
import { describeInBrowser } from './browser.js';
import { countingVisits } from './counting-visits.js';
import { failureVisits } from './failure-visits.js';
import { liveVisits } from './live-visits.js';
import { lookVisits } from './look-visits.js';
import { searchVisits } from './search-visits.js';
import { severalVisits } from './several-visits.js';
import { tableVisits } from './table-visits.js';
import { Visit } from './visit.js';

// One server and one browser for all tests: starting them takes longer than most tests.
describeInBrowser('the viewer', () => {
  const visit = new Visit();
  beforeAll(() => visit.begin());
  afterAll(() => visit.end());
  beforeEach(async () => void (await visit.open()));
  afterEach(() => visit.close());

  describe('the table', () => tableVisits(visit));
  describe('asking', () => askingVisits(visit));
  describe('searching', () => searchVisits(visit));
  describe('several agents', () => severalVisits(visit));
  describe('counts', () => countingVisits(visit));
  describe('live', () => liveVisits(visit));
  describe('looks and keys', () => lookVisits(visit));
  describe('failures', () => failureVisits(visit));
});

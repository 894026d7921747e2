import { transports } from '../server/running.js';
import { httpAnswerer } from './over-http.js';
import { runConformance } from './runner.js';

for (const transport of transports) runConformance(httpAnswerer(transport));

import { describeOnTransports } from '../server/running.js';
import { httpAnswerer } from './over-http.js';
import { runConformance } from './runner.js';

describeOnTransports('over HTTP on %s', (transport) => runConformance(httpAnswerer(transport)));

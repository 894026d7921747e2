import { httpAnswerer } from './over-http.js';
import { runConformance } from './runner.js';

runConformance(httpAnswerer('net'));

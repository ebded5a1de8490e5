// The JavaScript client of Spool, a durable stream buffer between agents and LLM providers.
// https://github.com/spool-dev/spool
export { durableFetch } from './fetch.js';
export { createDurableTransport } from './transport.js';
export { followRun } from './events.js';
export { DurableError } from './errors.js';

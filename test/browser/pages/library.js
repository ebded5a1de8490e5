// What pages take from npm, for cases that call it by hand.
export { fetchEventSource } from '@microsoft/fetch-event-source';
export { default as Anthropic } from '@anthropic-ai/sdk';
export { default as OpenAI } from 'openai';

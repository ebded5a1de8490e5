// What a page takes from npm, for cases that call it by hand.
export { fetchEventSource } from '@microsoft/fetch-event-source';

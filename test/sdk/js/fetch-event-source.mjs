// @microsoft/fetch-event-source is written for pages: this is what it looks for in one. Its window has no
// document, so that no SDK beside it takes the process for a page.
globalThis.window ??= { fetch: (...args) => fetch(...args), setTimeout, clearTimeout };
globalThis.document ??= { hidden: false, addEventListener() {}, removeEventListener() {} };

export const { fetchEventSource } = await import('@microsoft/fetch-event-source');

// Package frame cuts the body of a provider's answer into chunks.
//
// It keeps two laws. Joined, the chunks and the tail that Partial returns are exactly the bytes that
// were read: nothing is decoded, trimmed or added. And where a cut falls depends on the bytes alone,
// never on how reads delivered them (but for Opaque, whose chunks are its reads).
//
// The package is pure: it knows framing, not what a chunk means. docs/providers.md, section 1, says
// what a chunk is in each framing.
package frame

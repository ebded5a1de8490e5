package policy

// Transport is what became of the connection of one attempt. A name that is not listed here is a
// connection that broke.
type Transport string

// What may become of a connection.
const (
	NoFault       Transport = "none"           // the answer was read whole
	Open          Transport = "open"           // bytes may still come
	ClientGone    Transport = "client_gone"    // only the client has left
	EOFClean      Transport = "eof_clean"      // the protocol's own end of the body
	EOFUnexpected Transport = "eof_unexpected" // closed without it
	Reset         Transport = "reset"

	DNSError       Transport = "dns_error"
	ConnectRefused Transport = "connect_refused"
	ConnectTimeout Transport = "connect_timeout"
	TLSFailed      Transport = "tls_failed"        // the handshake broke
	TLSUnverified  Transport = "tls_verify_failed" // the peer is not who it should be
	RefusedStream  Transport = "refused_stream"    // HTTP/2 REFUSED_STREAM, or GOAWAY below the stream: never processed

	HeaderTimeout       Transport = "header_timeout"
	FirstContentTimeout Transport = "first_content_timeout"
	IdleTimeout         Transport = "idle_timeout" // no byte, or no content, for too long
	TotalTimeout        Transport = "total_timeout"

	CircuitOpen Transport = "circuit_open" // nothing was sent: the route is known to be down
	LocalLimit  Transport = "local_limit"  // nothing was sent: a limit of our own
)

// alive reports whether the attempt is still under way.
func (t Transport) alive() bool { return t == Open || t == ClientGone }

// silent reports whether the provider was asked and said nothing in time.
func (t Transport) silent() bool { return t == HeaderTimeout || t == FirstContentTimeout }

// local reports whether it was us who did not send.
func (t Transport) local() bool { return t == CircuitOpen || t == LocalLimit }

// unsent reports whether the request cannot have been acted on, whatever was written.
func (t Transport) unsent() bool {
	switch t {
	case DNSError, ConnectRefused, ConnectTimeout, TLSFailed, TLSUnverified, RefusedStream, CircuitOpen, LocalLimit:
		return true
	}
	return false
}

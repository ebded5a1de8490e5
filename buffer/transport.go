package buffer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/spool-dev/spool/buffer/policy"
)

// transport is what became of the attempt's connection, in the policy's words.
func (e *ending) transport() policy.Transport {
	switch e.alarm {
	case alarmConnect:
		return policy.ConnectTimeout
	case alarmHeaders:
		return policy.HeaderTimeout
	case alarmFirstContent:
		return policy.FirstContentTimeout
	case alarmByteIdle, alarmContentGap:
		return policy.IdleTimeout
	case alarmTotal:
		return policy.TotalTimeout
	}
	switch {
	case e.head == nil:
		return sendFault(e.err)
	case e.err == nil, e.head.cleanEnd(e.err):
		return policy.EOFClean
	case errors.Is(e.err, io.ErrUnexpectedEOF), e.err == io.EOF:
		return policy.EOFUnexpected
	}
	return policy.Reset
}

// sendFault is why a request got no answer.
func sendFault(err error) policy.Transport {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns != nil {
		return policy.DNSError
	}
	switch {
	case isUnverified(err):
		return policy.TLSUnverified
	case isHandshake(err):
		return policy.TLSFailed
	case isUnprocessed(err):
		return policy.RefusedStream
	case errors.Is(err, syscall.ECONNREFUSED):
		return policy.ConnectRefused
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || op.Timeout() {
			return policy.ConnectTimeout
		}
		return policy.ConnectRefused // no route, network down: it never left
	}
	return policy.Reset
}

func isUnverified(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}

func isHandshake(err error) bool {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	return strings.HasSuffix(err.Error(), "TLS handshake timeout") // net/http's own, without a type
}

// isUnprocessed reports whether an HTTP/2 provider said that it has not acted on the request and will
// not: it refused the stream, or it is going away and the stream is above the last one that it took
// (RFC 9113, sections 6.8 and 8.7). net/http exports none of these errors. Their texts are known by
// how they begin, since other errors quote what the provider wrote.
func isUnprocessed(err error) bool {
	text := strings.TrimPrefix(err.Error(), "http2: Transport: cannot retry err [")
	if strings.HasPrefix(text, "stream error: ") {
		return strings.Contains(text, "; REFUSED_STREAM")
	}
	return strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY") ||
		strings.HasPrefix(text, "http2: Transport received GOAWAY from server")
}

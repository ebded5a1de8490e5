package provider

import (
	"encoding/binary"
	"hash/crc32"
)

// The layout of application/vnd.amazon.eventstream: length, length of the headers, CRC of both;
// headers; payload; CRC of all. Numbers are big-endian.
const (
	awsPrelude = 12
	awsTrailer = 4
	awsString  = 7 // the header type of text
)

// message is what a message of an AWS event stream says. Its fields point into the message.
type message struct {
	kind    string // event, exception or error
	event   string // an event's name, or an exception's type
	code    string // of an error
	text    string // of an error
	payload []byte
}

// parseMessage reads one message; ok is false where its lengths do not fit.
func parseMessage(b []byte) (m message, ok bool) {
	if len(b) < awsPrelude+awsTrailer {
		return m, false
	}
	total, headers := int64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))
	if total > int64(len(b)) || awsPrelude+headers+awsTrailer > total {
		return m, false
	}
	m.payload = b[awsPrelude+headers : total-awsTrailer]
	return m, m.readHeaders(b[awsPrelude : awsPrelude+headers])
}

func (m *message) readHeaders(b []byte) bool {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < n+2 {
			return false
		}
		name, kind := view(b[1:n+1]), b[n+1]
		size, skip, ok := headerSize(kind, b[n+2:])
		if !ok || len(b)-n-2-skip < size {
			return false
		}
		value := b[n+2+skip:][:size]
		if kind == awsString {
			m.set(name, view(value))
		}
		b = b[n+2+skip+size:]
	}
	return true
}

func (m *message) set(name, value string) {
	switch name {
	case ":message-type":
		m.kind = value
	case ":event-type", ":exception-type":
		m.event = value
	case ":error-code":
		m.code = value
	case ":error-message":
		m.text = value
	}
}

// headerSize returns the size of a header's value and of the length that stands before it.
func headerSize(kind byte, b []byte) (size, skip int, ok bool) {
	switch kind {
	case 0, 1: // true, false
		return 0, 0, true
	case 2:
		return 1, 0, true
	case 3:
		return 2, 0, true
	case 4:
		return 4, 0, true
	case 5, 8: // a long, a time
		return 8, 0, true
	case 6, awsString:
		if len(b) < 2 {
			return 0, 0, false
		}
		return int(binary.BigEndian.Uint16(b)), 2, true
	case 9: // a UUID
		return 16, 0, true
	}
	return 0, 0, false
}

// appendMessage appends a message with text headers, given as name, value, name, value.
func appendMessage(b, payload []byte, headers ...string) []byte {
	var h []byte
	for i := 0; i+1 < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = binary.BigEndian.AppendUint16(append(h, awsString), uint16(len(headers[i+1])))
		h = append(h, headers[i+1]...)
	}
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, uint32(awsPrelude+len(h)+len(payload)+awsTrailer))
	b = binary.BigEndian.AppendUint32(b, uint32(len(h)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
	b = append(append(b, h...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start:]))
}

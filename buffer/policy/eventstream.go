package policy

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"iter"

	"github.com/tidwall/gjson"
)

// The layout of application/vnd.amazon.eventstream: length, length of the headers, CRC of both;
// headers; payload; CRC of all. Lengths are big-endian.
const (
	awsPrelude = 12
	awsTrailer = 4
)

// isEventStream reports whether body begins with a prelude whose checksum is right.
func isEventStream(body []byte) bool {
	return len(body) >= awsPrelude &&
		crc32.ChecksumIEEE(body[:8]) == binary.BigEndian.Uint32(body[8:awsPrelude])
}

// awsEvents yields the messages of an AWS event stream, up to the first that is not whole. An
// exception's name is its type, an error's is its code. The inner events of Bedrock's invoke are
// unwrapped.
func awsEvents(body []byte) iter.Seq[event] {
	return func(yield func(event) bool) {
		for isEventStream(body) {
			total, headers := int64(binary.BigEndian.Uint32(body)), int64(binary.BigEndian.Uint32(body[4:]))
			if total > int64(len(body)) || awsPrelude+headers+awsTrailer > total {
				return
			}
			payload := body[awsPrelude+headers : total-awsTrailer]
			if !yield(awsEvent(body[awsPrelude:awsPrelude+headers], payload)) {
				return
			}
			body = body[total:]
		}
	}
}

func awsEvent(headers, payload []byte) event {
	h := awsHeaders(headers)
	switch h[":message-type"] {
	case "exception":
		return event{name: h[":exception-type"], data: payload, failed: true}
	case "error":
		if len(payload) == 0 {
			payload = []byte(h[":error-message"])
		}
		return event{name: h[":error-code"], data: payload, failed: true}
	}
	if inner := gjson.GetBytes(payload, "bytes"); inner.Type == gjson.String {
		if data, err := base64.StdEncoding.DecodeString(inner.Str); err == nil {
			return event{data: data}
		}
	}
	return event{data: payload}
}

// awsHeaders reads the headers whose values are strings, up to the first that is broken.
func awsHeaders(b []byte) map[string]string {
	const stringType = 7
	sizes := [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16} // by type; -1: two bytes of length go before
	h := make(map[string]string)
	for len(b) > 1 {
		n := int(b[0])
		if len(b) < n+2 || int(b[n+1]) >= len(sizes) {
			return h
		}
		name, kind := string(b[1:n+1]), b[n+1]
		b = b[n+2:]
		size := sizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return h
			}
			size, b = int(binary.BigEndian.Uint16(b)), b[2:]
		}
		if size > len(b) {
			return h
		}
		if kind == stringType {
			h[name] = string(b[:size])
		}
		b = b[size:]
	}
	return h
}

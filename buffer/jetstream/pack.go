package jetstream

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/spool-dev/spool/buffer"
)

const (
	// maxPack is the bytes of chunks in one pack, unless it is a single chunk.
	maxPack = 512 << 10
	// maxBody is the bytes of one message: what is larger goes in several. The servers' default limit of
	// 1 MiB leaves room for headers.
	maxBody = 768 << 10
	// maxBatch is how many messages the servers take as one batch.
	maxBatch = 1000
	// format is the version of what is stored. A reader refuses a newer one.
	format = 1
)

// The headers of a message. packHeader holds the envelope; the rest are the servers'.
const (
	packHeader   = "Spool-Pack"
	expectHeader = "Nats-Expected-Last-Subject-Sequence"
	batchHeader  = "Nats-Batch-Id"
	orderHeader  = "Nats-Batch-Sequence"
	commitHeader = "Nats-Batch-Commit"
	seqHeader    = "Nats-Sequence"
)

// envelope says what a message holds of its run, and where the run stands after its commit.
//
//	commit: one message, or a batch   [pack][pack][pack][record]
//	pack:   one message, or its parts of a large one
//	body:   sizes of the chunks, their bytes, and in a commit's last pack perhaps the record
type envelope struct {
	V     int    `json:"v"`
	Nonce string `json:"nonce"`           // of the commit
	Left  int    `json:"left,omitempty"`  // messages of the commit that follow this one
	Part  int    `json:"part,omitempty"`  // which part of its pack this is
	Parts int    `json:"parts,omitempty"` // how many there are; 0 is one
	Pos   int64  `json:"pos"`             // of the pack's first chunk
	Off   int64  `json:"off"`             // the byte offset of its beginning
	N     int64  `json:"n"`               // chunks in the pack
	Size  int    `json:"size,omitempty"`  // bytes of the body before the record
	Head  int64  `json:"head"`            // of the run after the commit
	Bytes int64  `json:"bytes"`
	Rec   uint64 `json:"rec,omitempty"` // the sequence of the record that holds; 0: this commit's last message
	CRC   uint32 `json:"crc"`           // CRC32C of the message's body
}

// record is everything about a run but its chunks, its head and its bytes.
type record struct {
	Run   buffer.Run
	Owner string // who may append
	Swept bool   // the chunks are deleted
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pack is the chunks of one envelope.
type pack struct {
	envelope
	body []byte
}

// encode is a record as it is stored: byte for byte, which JSON would not be.
func (r record) encode() ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(r); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return b.Bytes(), nil
}

func decodeRecord(body []byte) (r record, err error) {
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&r); err != nil {
		return r, fmt.Errorf("decode record: %w", err)
	}
	return r, nil
}

// packs cuts chunks into packs from position pos and byte off on, and adds the record's encoding to the
// last one where it fits.
func packs(pos, off int64, chunks [][]byte, rec []byte) (all []pack) {
	for {
		p := pack{envelope: envelope{Pos: pos, Off: off}}
		size := 0
		for _, c := range chunks {
			if p.N > 0 && size+len(c) > maxPack {
				break
			}
			p.N++
			size += len(c)
		}
		p.body = binary.AppendUvarint(nil, uint64(p.N))
		for _, c := range chunks[:p.N] {
			p.body = binary.AppendUvarint(p.body, uint64(len(c)))
		}
		p.body = append(p.body, bytes.Join(chunks[:p.N], nil)...)
		p.Size = len(p.body)
		pos, off, chunks = pos+p.N, off+int64(size), chunks[p.N:]
		all = append(all, p)
		if len(chunks) == 0 {
			break
		}
	}
	last := &all[len(all)-1]
	if last.N > 0 && len(last.body)+len(rec) > maxBody {
		all = append(all, pack{envelope: envelope{Pos: pos, Off: off}})
		last = &all[len(all)-1]
	}
	last.body = append(last.body, rec...)
	return all
}

// messages are the packs of one commit as they are published to subject, after the message at expect.
// common is what all of them say alike.
func messages(subject string, expect uint64, all []pack, common envelope) ([]*nats.Msg, error) {
	var msgs []*nats.Msg
	var envelopes []envelope
	for _, p := range all {
		parts := max(1, (len(p.body)+maxBody-1)/maxBody)
		for i := range parts {
			e := p.envelope
			e.V, e.Nonce, e.Head, e.Bytes, e.Rec = format, common.Nonce, common.Head, common.Bytes, common.Rec
			if parts > 1 {
				e.Part, e.Parts = i, parts
			}
			body := p.body[i*maxBody : min((i+1)*maxBody, len(p.body))]
			e.CRC = crc32.Checksum(body, castagnoli)
			envelopes = append(envelopes, e)
			msgs = append(msgs, &nats.Msg{Subject: subject, Header: nats.Header{}, Data: body})
		}
	}
	if len(msgs) > maxBatch {
		return nil, fmt.Errorf("commit of %d messages: at most %d are possible", len(msgs), maxBatch)
	}
	for i, m := range msgs {
		envelopes[i].Left = len(msgs) - 1 - i
		text, err := json.Marshal(envelopes[i])
		if err != nil {
			return nil, fmt.Errorf("encode envelope: %w", err)
		}
		m.Header.Set(packHeader, string(text))
		if len(msgs) > 1 {
			m.Header.Set(orderHeader, strconv.Itoa(i+1))
		}
	}
	msgs[0].Header.Set(expectHeader, strconv.FormatUint(expect, 10))
	if len(msgs) > 1 {
		msgs[len(msgs)-1].Header.Set(commitHeader, "1")
	}
	return msgs, nil
}

func decodeEnvelope(h nats.Header) (e envelope, err error) {
	if err := json.Unmarshal([]byte(h.Get(packHeader)), &e); err != nil {
		return e, fmt.Errorf("decode envelope: %w", err)
	}
	if e.V > format {
		return e, fmt.Errorf("message of format %d: this program knows %d", e.V, format)
	}
	return e, nil
}

// chunks are the pack's. Its memory is theirs.
func (p pack) chunks() ([]buffer.Chunk, error) {
	torn := fmt.Errorf("pack at position %d is torn", p.Pos)
	if p.Size > len(p.body) || p.Size < 0 {
		return nil, torn
	}
	rest := p.body[:p.Size]
	n, used := binary.Uvarint(rest)
	if used <= 0 || int64(n) != p.N || n > uint64(len(rest)) {
		return nil, torn
	}
	rest = rest[used:]
	sizes := make([]uint64, n)
	for i := range sizes {
		if sizes[i], used = binary.Uvarint(rest); used <= 0 {
			return nil, torn
		}
		rest = rest[used:]
	}
	chunks, end := make([]buffer.Chunk, n), p.Off
	for i, size := range sizes {
		if size > uint64(len(rest)) {
			return nil, torn
		}
		end += int64(size)
		chunks[i] = buffer.Chunk{Pos: p.Pos + int64(i), End: end, Data: rest[:size:size]}
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, torn
	}
	return chunks, nil
}

// record decodes the one after the chunks.
func (p pack) record() (record, error) {
	if p.Size > len(p.body) || p.Size < 0 {
		return record{}, errors.New("pack without its record")
	}
	return decodeRecord(p.body[p.Size:])
}

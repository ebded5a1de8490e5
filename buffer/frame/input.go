package frame

import "io"

const (
	minBlock = 2 << 10  // bytes; what an idle stream costs
	maxBlock = 64 << 10 // bytes; beyond this a read gets no faster. Also the most that one read takes
	minRoom  = 512      // bytes; a read into less is not worth its call

	// maxEmptyReads is how many reads in a row may give neither bytes nor an error.
	maxEmptyReads = 100
)

// input reads into blocks. A byte that was read is never moved or written again inside its block:
// when a block is full it is abandoned to the chunks that were cut out of it.
type input struct {
	r     io.Reader
	limit int // bytes; a read takes no more, so that an opaque chunk is within it

	block []byte // what was read; its capacity is the block
	size  int    // of the next block, while chunks are small
	brisk bool   // a read filled at least half of the block: larger blocks would pay
	err   error  // the reader's, once it has given one
}

// fill reads at least one byte or sets err, or both. from is the first byte of the block that is
// still needed; fill returns where that byte is now.
func (in *input) fill(from int) int {
	from = in.makeRoom(from)
	have := len(in.block)
	room := in.block[have:cap(in.block)]
	room = room[:min(len(room), maxBlock, in.limit)]
	for range maxEmptyReads {
		n, err := in.r.Read(room)
		in.block = in.block[:have+n]
		in.err = err
		if n == 0 && err == nil {
			continue
		}
		in.brisk = in.brisk || n == len(room) && n >= in.size/2
		return from
	}
	in.err = io.ErrNoProgress
	return from
}

// makeRoom starts a new block where the present one is full, and takes along what is still needed.
//
// A chunk that outgrows blocks doubles them, so it is copied a constant number of times. The block
// of such a chunk is left as soon as the chunk is given: the small ones that follow must not keep
// megabytes alive.
func (in *input) makeRoom(from int) int {
	oversized := from > 0 && cap(in.block) > 2*maxBlock
	if cap(in.block)-len(in.block) >= minRoom && !oversized {
		return from
	}
	if in.brisk {
		in.size = min(2*in.size, maxBlock)
	} else {
		in.size = max(in.size/2, minBlock)
	}
	in.brisk = false

	rest := in.block[from:]
	room := max(in.size, min(len(rest), in.limit-len(rest)))
	block := make([]byte, len(rest), len(rest)+room)
	copy(block, rest)
	in.block = block
	return 0
}

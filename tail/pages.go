package tail

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/spool-dev/spool/buffer"
)

// Pages bounds what all readers together hold of pages that are larger than PageBytes: a page has one chunk
// at least, which may have any size, and a reader who does not read it holds it until its write is given up.
// Who finds no room holds nothing, and waits in the order of arrival. nil has no bound.
type Pages struct {
	room *semaphore.Weighted
	size int64
}

// NewPages has room for so many bytes. One page has room in any case.
func NewPages(bytes int64) *Pages { return &Pages{semaphore.NewWeighted(bytes), bytes} }

// cost is what a page takes of the room; most take none.
func (p *Pages) cost(chunks []buffer.Chunk) int64 {
	if p == nil || len(chunks) == 0 {
		return 0
	}
	last := len(chunks) - 1
	bytes := chunks[last].End - chunks[0].End + int64(len(chunks[0].Data))
	if bytes <= PageBytes {
		return 0
	}
	return min(bytes, p.size)
}

// Hold takes room for as many bytes as somebody has who is no cursor, where there is room now.
func (p *Pages) Hold(bytes int) (give func(), ok bool) {
	if p == nil || bytes <= PageBytes {
		return func() {}, true
	}
	cost := min(int64(bytes), p.size)
	return func() { p.give(cost) }, p.try(cost)
}

func (p *Pages) try(cost int64) bool { return p.room.TryAcquire(cost) }

func (p *Pages) take(ctx context.Context, cost int64) error {
	if p.room.Acquire(ctx, cost) != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (p *Pages) give(cost int64) { p.room.Release(cost) }

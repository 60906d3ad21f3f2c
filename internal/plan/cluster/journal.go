package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const (
	// labelManaged and labelJournal mark every ConfigMap of a journal.
	labelManaged = "app.kubernetes.io/managed-by"
	manager      = "kubectl-kpr"
	labelJournal = "kpr.kubectl-kpr.io/journal" // its id
	labelKind    = "kpr.kubectl-kpr.io/plan"    // of an index: the plan's kind

	prefix    = "kpr-journal-"
	chunkSize = 64 << 10 // bytes of entries in a chunk that takes more
	maxChunks = 10000

	keyEntries = "entries" // of the index: how many; of a chunk: they themselves
	keyChunks  = "chunks"
	keyState   = "state" // open or closed
)

// Store is where the ConfigMaps are.
type Store interface {
	Get(ctx context.Context, name string) (*corev1.ConfigMap, error)
	List(ctx context.Context, selector string) ([]corev1.ConfigMap, error)
	Put(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error)
}

var _ Store = (*write.ConfigMaps)(nil)

// Journal is a plan.Journal in a cluster. It is not safe for concurrent use.
type Journal struct {
	store Store
	id    string

	index   *corev1.ConfigMap // as it was read or written, nil if there is none
	chunk   *corev1.ConfigMap // the last one
	lines   string            // of the last chunk that the index counts
	next    int               // number of the next entry
	chunks  int
	read    bool // all of the above is from the cluster
	claimed bool
}

// New is the journal of that id, which need not be there yet.
func New(store Store, id string) *Journal { return &Journal{store: store, id: id} }

// Entries is part of plan.Journal.
func (j *Journal) Entries(ctx context.Context) ([]plan.Entry, error) {
	*j = Journal{store: j.store, id: j.id}
	index, err := j.store.Get(ctx, prefix+j.id)
	if errors.Is(err, source.ErrAbsent) {
		j.read = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	total, err1 := strconv.Atoi(index.Data[keyEntries])
	chunks, err2 := strconv.Atoi(index.Data[keyChunks])
	if err := errors.Join(err1, err2); err != nil || total < 0 || chunks < 0 || chunks > maxChunks {
		return nil, fmt.Errorf("configmap %s: not the index of a journal: %w", index.Name, err)
	}
	var all []plan.Entry
	for n := range chunks {
		cm, err := j.store.Get(ctx, j.chunkName(n))
		if err != nil {
			return nil, fmt.Errorf("journal %s has %d chunks by its index: %w", j.id, chunks, err)
		}
		lines := ""
		for line := range strings.Lines(cm.Data[keyEntries]) {
			if len(all) == total {
				break
			}
			e, err := plan.Decode([]byte(line), len(all))
			if err != nil {
				return nil, fmt.Errorf("configmap %s: %w", cm.Name, err)
			}
			all = append(all, e)
			lines += line
		}
		j.chunk, j.lines = cm, lines
	}
	if len(all) != total {
		return nil, fmt.Errorf("journal %s: %d entries are there, its index counts %d", j.id, len(all), total)
	}
	j.index, j.next, j.chunks, j.read = index, total, chunks, true
	return all, nil
}

// Append is part of plan.Journal.
func (j *Journal) Append(ctx context.Context, e plan.Entry) error {
	err := j.append(ctx, e)
	if err != nil {
		j.read = false // an answer may have been lost: the cluster knows
	}
	switch {
	case errors.Is(err, write.ErrChanged):
		return fmt.Errorf("journal %s: %w: %w", j.id, plan.ErrConflict, err)
	case errors.Is(err, write.ErrTooLarge):
		return fmt.Errorf("journal %s: %w: %w", j.id, plan.ErrFull, err)
	}
	return err
}

func (j *Journal) append(ctx context.Context, e plan.Entry) error {
	if !j.read {
		if _, err := j.Entries(ctx); err != nil {
			return err
		}
	}
	if e.Seq != j.next {
		return fmt.Errorf("journal %s: entry %d (%s), where %d is next: %w", j.id, e.Seq, e.Event, j.next, plan.ErrConflict)
	}
	if err := j.claim(ctx, e); err != nil {
		return err
	}
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("journal %s: entry %d: %w", j.id, e.Seq, err)
	}
	line := string(data) + "\n"
	if j.chunks == 0 || j.lines != "" && len(j.lines)+len(line) > chunkSize {
		if err := j.open(ctx); err != nil {
			return err
		}
	}
	lines := j.lines + line
	if j.chunk, err = j.store.Put(ctx, j.configMap(j.chunk, j.chunkName(j.chunks-1), map[string]string{keyEntries: lines})); err != nil {
		return err
	}
	state := "open"
	if e.Event == plan.Closed {
		state = "closed"
	}
	if err := j.putIndex(ctx, j.next+1, state); err != nil {
		return err
	}
	j.lines, j.next = lines, j.next+1
	return nil
}

// claim makes the index this writer's and reads the last chunk again.
func (j *Journal) claim(ctx context.Context, e plan.Entry) error {
	if j.claimed {
		return nil
	}
	if j.index == nil {
		kind := ""
		if e.Plan != nil {
			kind = e.Plan.Kind
		}
		j.index = j.configMap(nil, prefix+j.id, nil)
		j.index.Labels[labelKind] = kind
	}
	if err := j.putIndex(ctx, j.next, cmp.Or(j.index.Data[keyState], "open")); err != nil {
		return err
	}
	if j.chunks > 0 {
		cm, err := j.store.Get(ctx, j.chunkName(j.chunks-1))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(cm.Data[keyEntries], j.lines) {
			return fmt.Errorf("configmap %s: %w", cm.Name, write.ErrChanged)
		}
		j.chunk = cm
	}
	j.claimed = true
	return nil
}

// open begins a chunk. One that is there already was begun before a crash and
// is not counted; it is taken over.
func (j *Journal) open(ctx context.Context) error {
	if j.chunks == maxChunks {
		return fmt.Errorf("%d chunks: %w", maxChunks, write.ErrTooLarge)
	}
	cm, err := j.store.Get(ctx, j.chunkName(j.chunks))
	if err != nil && !errors.Is(err, source.ErrAbsent) {
		return err
	}
	j.chunk, j.lines = cm, ""
	j.chunks++
	return nil
}

func (j *Journal) putIndex(ctx context.Context, total int, state string) error {
	cm := j.configMap(j.index, prefix+j.id, map[string]string{
		keyEntries: strconv.Itoa(total), keyChunks: strconv.Itoa(j.chunks), keyState: state, "claim": strconv.Itoa(j.claims() + 1),
	})
	maps.Copy(cm.Labels, j.index.Labels)
	index, err := j.store.Put(ctx, cm)
	if err != nil {
		return err
	}
	j.index = index
	return nil
}

// claims counts the writes of the index, so that none leaves it as it was: the
// server would keep its version then.
func (j *Journal) claims() int {
	n, _ := strconv.Atoi(j.index.Data["claim"])
	return n
}

func (j *Journal) chunkName(n int) string { return fmt.Sprintf("%s%s-%04d", prefix, j.id, n) }

// configMap is one of the journal's, in the place of an earlier one if it is not nil.
func (j *Journal) configMap(old *corev1.ConfigMap, name string, data map[string]string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelManaged: manager, labelJournal: j.id}},
		Data:       data,
	}
	if old != nil {
		cm.ResourceVersion = old.ResourceVersion
	}
	return cm
}

// Found is a journal that is in the cluster.
type Found struct {
	ID, Kind string
	Closed   bool
	Entries  int
}

// Find lists the journals of a kind of plan, of all kinds if it is "".
func Find(ctx context.Context, store Store, kind string) ([]Found, error) {
	selector := labelManaged + "=" + manager + "," + labelKind
	if kind != "" {
		selector += "=" + kind
	}
	all, err := store.List(ctx, selector)
	if err != nil {
		return nil, err
	}
	var out []Found
	for i := range all {
		n, _ := strconv.Atoi(all[i].Data[keyEntries])
		out = append(out, Found{ID: all[i].Labels[labelJournal], Kind: all[i].Labels[labelKind], Closed: all[i].Data[keyState] == "closed", Entries: n})
	}
	return out, nil
}

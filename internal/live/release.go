package live

import (
	"context"

	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
)

// HelmRelease reads a release's newest deployed revision into memory, and says
// which path that was. No topic has it: a recording never holds a release,
// which may have secrets among its values.
func (s *Source) HelmRelease(ctx context.Context, namespace, name string) (*helm.Release, string, error) {
	data, path, err := s.kube.HelmRelease(ctx, namespace, name)
	if err != nil {
		return nil, path, err
	}
	r, err := helm.DecodeRelease(data)
	return r, path, err
}

package exec

import (
	"errors"
	"strings"
	"testing"
)

// An API server that cannot reach a kubelet repeats the whole request.
func TestErrorsDoNotRepeatTheCommand(t *testing.T) {
	err := errors.New(`Internal error occurred: error sending request: Post "https://172.30.0.13:10250/exec/kube-system/a/cilium-agent?command=sh&command=-c&command=n%3D%241": dial tcp 172.30.0.13:10250: i/o timeout`)
	got := classify(t.Context(), Target{"kube-system", "a", "cilium-agent"}, 0, err).Error()
	if strings.Contains(got, "command=") || !strings.Contains(got, `/cilium-agent": dial tcp 172.30.0.13:10250: i/o timeout`) {
		t.Error(got)
	}
}

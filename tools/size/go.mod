module github.com/kubectl-kpr/kubectl-kpr/tools/size

go 1.26.0

package states

import "fmt"

// deployment is a Deployment of the lab's server in namespace shop, named and
// labelled app: name. More is further YAML of the pod's spec, indented by six.
func deployment(name string, replicas int, more string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
%[3]s      containers:
      - name: echo
        image: localhost/echo:lab
        imagePullPolicy: Never
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 2}
`, name, replicas, more)
}

// service is a Service in namespace shop. More is further YAML of its spec,
// indented by two.
func service(name, more, selector string, port int, target string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: shop}
spec:
%s  selector: {%s}
  ports: [{name: http, port: %d, targetPort: %s}]
`, name, more, selector, port, target)
}

// Follows the ConfigMaps of a namespace with client-go's informer, and prints a line for each thing
// that its handlers are told: "synced", "added a", "updated a", "deleted a". Ends when standard
// input does. KUBE_FEATURE_WatchListClient chooses how it begins.
package main

import (
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func nameOf(object any) string {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	return object.(*corev1.ConfigMap).Name
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(config), 0, informers.WithNamespace(os.Args[2]))
	informer := factory.Core().V1().ConfigMaps().Informer()
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { fmt.Println("added", nameOf(object)) },
		UpdateFunc: func(_, object any) { fmt.Println("updated", nameOf(object)) },
		DeleteFunc: func(object any) { fmt.Println("deleted", nameOf(object)) },
	})
	stop := make(chan struct{})
	factory.Start(stop)
	if cache.WaitForCacheSync(stop, informer.HasSynced) {
		fmt.Println("synced")
	}
	io.Copy(io.Discard, os.Stdin)
	close(stop)
}

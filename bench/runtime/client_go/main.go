// A client-go informer on pods, measured as ours is: it prints one JSON line when its cache is
// synced, and one for each change it hears of, until it is told to stop.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// Without pages of the program itself.
func rssKB() int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		var value int
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &value); err == nil {
			return value
		}
	}
	return 0
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	json := flag.Bool("json", false, "ask for JSON; without it for protobuf where the server has it")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		panic(err)
	}
	if *json {
		config.ContentType = "application/json"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	informer := factory.Core().V1().Pods().Informer()
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, after any) {
			fmt.Printf("%s %d\n", after.(*corev1.Pod).ResourceVersion, monotonic())
		},
	})
	before, begin := rssKB(), time.Now()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		os.Exit(1)
	}
	wall, cpu, peak := time.Since(begin).Seconds(), cpuSeconds(), rssKB()
	runtime.GC() // what it needs to keep, not what it has not given back yet
	time.Sleep(time.Second)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Printf(`{"objects":%d,"rss_before_kb":%d,"rss_synced_kb":%d,"rss_kb":%d,"heap_kb":%d,"cpu_s":%.3f,"wall_s":%.3f}`+"\n",
		len(informer.GetStore().ListKeys()), before, peak, rssKB(), memory.HeapAlloc/1024, cpu, wall)
	<-ctx.Done()
}

// CLOCK_MONOTONIC in nanoseconds, which other processes can compare with.
func monotonic() int64 {
	var now syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

/* Which processors a team gets; see placement.h. The order comes from hwloc, the binding is done by
 * the kernels' own team (kernels/cpu/pin.h). */
#include "bench/core/placement.h"

#include <hwloc.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/cpu/pin.h"

#define NONE    "none"
#define SCATTER "scatter"

/* Logical numbers of hwloc walk the tree: neighbours share as much as can be shared. */
static EngStatus read_processors(EngPlacement *p, EngErr *err)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t ours = hwloc_bitmap_alloc();
    if (!ours || hwloc_topology_init(&topology)) {
        hwloc_bitmap_free(ours);
        return ENG_FAIL(err, ENG_NO_MEMORY, "hwloc: no topology");
    }
    EngStatus status = ENG_OK;
    if (hwloc_topology_load(topology))
        status = ENG_FAIL(err, ENG_INTERNAL, "hwloc: cannot read the machine's topology");
    else if (!hwloc_get_cpubind(topology, ours, HWLOC_CPUBIND_PROCESS))
        hwloc_topology_restrict(topology, ours, 0);
    int n = status ? 0 : hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    if (!status)
        status =
            eng_alloc_or((void **)&p->cpus, 2 * (size_t)n, sizeof *p->cpus, "a placement", err);
    hwloc_bitmap_free(ours);
    if (status) {
        hwloc_topology_destroy(topology);
        return status;
    }
    for (int i = 0; i < n; i++)
        p->cpus[i] = (int)hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, (unsigned)i)->os_index;
    p->chosen = p->cpus + n;
    p->n = n;
    p->topology = topology;
    return ENG_OK;
}

/* One processor of each of `threads` sets that hwloc spreads over the tree. */
static EngStatus choose_scattered(EngPlacement *p, int threads, EngErr *err)
{
    hwloc_topology_t topology = p->topology;
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    hwloc_cpuset_t *sets;
    EngStatus status =
        eng_alloc_or((void **)&sets, (size_t)threads, sizeof *sets, "a placement", err);
    if (status) return status;
    if (hwloc_distrib(topology, &root, 1, sets, (unsigned)threads, 64, 0))
        status = ENG_FAIL(err, ENG_INTERNAL, "hwloc: cannot distribute %d threads", threads);
    for (int i = 0; i < threads && !status; i++) {
        p->chosen[i] = hwloc_bitmap_first(sets[i]);
        hwloc_bitmap_free(sets[i]);
    }
    eng_free(sets);
    return status;
}

static EngStatus bind(EngPlacement *p, const char *pin, int threads, EngErr *err)
{
    EngStatus status = p->topology ? ENG_OK : read_processors(p, err);
    if (status) return status;
    if (threads > p->n)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "cannot pin %d threads to %d processors", threads,
                        p->n);
    if (threads > p->largest) p->largest = threads;
    if (strcmp(pin, SCATTER)) return eng_cpu_pin(threads, p->cpus, p->n, err);
    status = choose_scattered(p, threads, err);
    return status ? status : eng_cpu_pin(threads, p->chosen, threads, err);
}

EngStatus eng_placement_apply(EngPlacement *p, const EngPoint *point, EngErr *err)
{
    const EngExperiment *experiment = point->experiment;
    const char *pin = NONE;
    int threads = 1;
    for (int i = 0; i < experiment->n_axes; i++) {
        if (!strcmp(experiment->axes[i].name, ENG_AXIS_PIN)) pin = point->values[i].text;
        if (!strcmp(experiment->axes[i].name, ENG_AXIS_THREADS)) threads = (int)point->values[i].i;
    }
    bool bound = p->pin && strcmp(p->pin, NONE);
    if (!strcmp(pin, NONE)) {
        if (!bound) return ENG_OK;
        EngStatus status = eng_cpu_unpin(p->largest, p->cpus, p->n, err);
        if (!status) p->pin = NULL;
        return status;
    }
    /* A team of another size has new threads, which inherit the binding of their maker. */
    if (bound && !strcmp(p->pin, pin) && p->threads == threads) return ENG_OK;
    EngStatus status = bind(p, pin, threads, err);
    p->pin = status ? p->pin : pin;
    p->threads = threads;
    return status;
}

void eng_placement_free(EngPlacement *p)
{
    if (p->topology) hwloc_topology_destroy((hwloc_topology_t)p->topology);
    eng_free(p->cpus);
    *p = (EngPlacement){0};
}

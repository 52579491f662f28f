/* What a machine's measurements say of the models' parameters, and what the models then say of
 * other measurements. Everything is fitted on one recording (sweeps/calibrate.sweep); predictions
 * are for points of any recording of the same kind of machine (sweeps/validate.sweep).
 *
 *   ladder    latency of a dependent load by working set and page size, straight between measured
 *             sizes over both logarithms; with N chains the soft knee of knee.h, fitted at 1, 32
 *             and 64 chains of one size and carried to others by their latency
 *   gather    64-byte lines of distinct rows over the rate at which random rows come (planner's
 *             gather model), by page size, threads and table, straight between measured tables
 *   drive     reads of a drive by how many are under way: the soft knee, fitted at 1, 8 and 64
 *   prefetch  a step of two layers beside its fetch: windows, stall and slow-downs of
 *             sim/timeline, from one step whose layers are too short to hide the fetch
 */
#ifndef ENG_SIM_PLANNER_CALIBRATION_H
#define ENG_SIM_PLANNER_CALIBRATION_H

#include "sim/planner/recording.h"
#include "sim/timeline/window.h"

#define ENG_CURVE_POINTS 24
#define ENG_CURVES       8
#define ENG_LAYER_WIDTHS 8
#define ENG_BASIS_TEXT   128

typedef enum EngModelKind {
    ENG_MODEL_LADDER = 0,
    ENG_MODEL_GATHER,
    ENG_MODEL_DRIVE,
    ENG_MODEL_PREFETCH,
    ENG_MODEL_COUNT
} EngModelKind;

const char *eng_model_name(EngModelKind model);
/* Largest mean absolute error, as a share of the measurement, that a model may have. */
double eng_model_gate(EngModelKind model);

/* Measured values over a size, ascending; `basis` names the points. */
typedef struct EngMeasuredCurve {
    char pages[8];
    int threads;
    int n;
    double at[ENG_CURVE_POINTS], values[ENG_CURVE_POINTS];
    char basis[ENG_BASIS_TEXT];
} EngMeasuredCurve;

typedef struct EngKnee {
    double latency, most, exponent; /* s, requests/s */
    double tried;                   /* most requests under way that were measured */
    double best;                    /* fewest of those that reach 95 % of the highest rate */
    char basis[ENG_BASIS_TEXT];
} EngKnee;

/* A step of some tokens beside its fetch. */
typedef struct EngStepCost {
    double tokens;
    double before, after; /* s per token: before the first layer, behind the last */
    double late;          /* s per token: from ids known until a layer that waits has its rows */
    char basis[ENG_BASIS_TEXT];
} EngStepCost;

typedef struct EngCalibration {
    char name[64], date[17], machine[96];
    EngMeasuredCurve latency[ENG_CURVES]; /* s by bytes of the working set; threads 1 */
    int n_latency;
    EngKnee chains; /* of a set of chain_bytes */
    double chain_bytes;
    EngMeasuredCurve lines[ENG_CURVES]; /* random 64-byte lines/s by rows of a head */
    int n_lines;
    double table_bytes, file_bytes; /* of the largest table whose rows were gathered, or read */
    EngKnee drive;
    EngStepCost memory, uring;
    int n_layers;
    double widths[ENG_LAYER_WIDTHS], layers[ENG_LAYER_WIDTHS]; /* hidden size, s of a layer */
    char layer_basis[ENG_BASIS_TEXT];
    EngSlowdowns slowdowns; /* measured ones below 0 are 0 */
    char slowdown_basis[ENG_BASIS_TEXT];
    double read_bandwidth, copy_bandwidth, flops; /* all threads: bytes/s, flop/s */
    int threads;                                  /* of those */
    char read_basis[ENG_BASIS_TEXT], copy_basis[ENG_BASIS_TEXT], flops_basis[ENG_BASIS_TEXT];
    double populate_rate; /* bytes/s of free memory that is touched; 0: not measured */
    char populate_basis[ENG_BASIS_TEXT];
} EngCalibration;

/* ENG_UNSUPPORTED names the recording, the part and the measurement it lacks; partial: parts that
 * lack one stay zero instead, and are named in missing (NULL: an error after all). */
EngStatus eng_calibration_fit(const EngRecording *recording, EngStr *missing,
                              EngCalibration *calibration, EngErr *err);

typedef struct EngPrediction {
    EngModelKind model;
    double value;               /* in the unit of the metric */
    bool extrapolated;          /* outside what was calibrated */
    char basis[ENG_BASIS_TEXT]; /* the points it rests on */
} EngPrediction;

/* false: no model speaks of this measurement, or its part is not calibrated. `recording`: that of
 * the value, for counts (distinct rows) that a prediction may use. */
bool eng_calibration_predict(const EngCalibration *calibration, const EngRecording *recording,
                             const EngRecordedValue *value, EngPrediction *prediction);

/* What no measurement tells. Zero: not known, left out. */
typedef struct EngMachineFacts {
    double memory_bytes, drive_bytes;
    double numa_nodes;
} EngMachineFacts;

/* A machine file (sim/machine/machine.h) with tiers dram and file, each value measured, with the
 * points it rests on; values that were not measured are left out. */
EngStatus eng_calibration_machine(const EngCalibration *calibration, const EngMachineFacts *facts,
                                  EngStr *out, EngErr *err);

/* How a model does on one recording. */
typedef struct EngModelError {
    int n, extrapolated;        /* predictions; of these outside what was calibrated */
    double absolute, bias;      /* means of |p - m| / m and (p - m) / m */
    double worst;               /* signed, of the largest |p - m| / m */
    const EngRecordedValue *at; /* where that was */
} EngModelError;

/* errors: [ENG_MODEL_COUNT]. */
void eng_calibration_errors(const EngCalibration *calibration, const EngRecording *recording,
                            EngModelError *errors);

#endif

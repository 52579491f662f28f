/* Making a table file: PATH.part, written block by block by several threads, its checksums beside
 * it in the file, so that a killed call can be gone on with; see table_file.h. */
#include "kernels/store/table_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/store/content.h"
#include "kernels/store/table_header.h"

#define PROGRESS_NS 5000000000

typedef struct Make {
    const EngTableSource *source;
    const char *path;
    EngTableFile part; /* layout, checks and descriptor of PATH.part */
    int threads;
    uint8_t **buffers; /* one a worker */
    bool resume;
    atomic_int_fast64_t next, done, resumed, told_ns;
    atomic_bool stop;
    pthread_mutex_t lock; /* of err, the first error */
    EngErr err;
} Make;

/* ---- description ---- */

/* The source's description, JSON with sorted keys; checks_sum NULL: what is known beforehand. */
static EngStatus describe(const EngTableSource *source, const uint8_t *checks_sum, char **text,
                          EngErr *err)
{
    char hex[ENG_DIGEST_HEX];
    EngStatus status = ENG_OK;
    json_t *json = json_loads(source->identity, 0, NULL);
    if (!json) return ENG_FAIL(err, ENG_INTERNAL, "no JSON object: %s", source->identity);
    int bad =
        json_object_set_new(json, "row_format", json_string(eng_row_format_name(source->format)));
    bad = bad || json_object_set_new(json, "row_dims", json_integer(source->row_dims)) ||
          json_object_set_new(json, "rows", json_integer(source->rows));
    for (int i = 0; checks_sum && i < ENG_DIGEST_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", checks_sum[i]);
    if (checks_sum && source->by_content)
        bad = bad || json_object_set_new(json, "content_sha256", json_string(hex));
    if (!checks_sum && source->state)
        bad = bad || json_object_set_new(json, "state", json_string(source->state));
    char *dumped = bad ? NULL : json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);
    *text = dumped ? eng_strdup(dumped) : NULL;
    if (!*text) status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a table's description");
    free(dumped);
    json_decref(json);
    return status;
}

/* The header as it is while blocks are missing (`finished` false), or with them all there. */
static EngStatus make_page(const Make *make, bool finished, uint8_t page[ENG_TABLE_FILE_PAGE],
                           char digest[ENG_KEY_HEX], EngErr *err)
{
    uint8_t sum[ENG_DIGEST_BYTES] = {0};
    char *text = NULL;
    EngStatus status = ENG_OK;
    if (finished)
        status = eng_digest_raw(make->part.checks, eng_table_checks_bytes(&make->part), sum, err);
    if (!status) status = describe(make->source, finished ? sum : NULL, &text, err);
    if (!status)
        status = eng_table_header_write(finished ? ENG_TABLE_MAGIC : ENG_TABLE_MAGIC_PART, text,
                                        sum, page, err);
    if (!status) status = eng_key_of(text, digest, err);
    eng_free(text);
    return status;
}

/* ---- PATH.part ---- */

static EngStatus part_failed(const Make *make, const char *what, EngErr *err)
{
    return ENG_FAIL(err, ENG_IO, "%s: cannot %s: %s", make->part.path, what, strerror(errno));
}

static EngStatus left_alone(const char *path, const char *what, EngErr *err)
{
    return ENG_FAIL(err, ENG_USAGE, "%s: %s, and is left alone; remove it first", path, what);
}

/* Empty, or the beginning of a table. Zeros: a crash came before the header was on disk. */
static bool is_part(int fd)
{
    static const char none[8];
    char head[sizeof none] = {0};
    return pread(fd, head, sizeof head, 0) >= 0 &&
           (!memcmp(head, none, sizeof head) || !memcmp(head, ENG_TABLE_MAGIC_PART, sizeof head) ||
            !memcmp(head, ENG_TABLE_MAGIC, sizeof head));
}

/* Opens and locks PATH.part. Its maker may rename it between our two calls: then it is not ours. */
static EngStatus open_part(Make *make, EngErr *err)
{
    struct stat mine, named;
    make->part.fd = open(make->part.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (make->part.fd < 0) return part_failed(make, "open it", err);
    if (flock(make->part.fd, LOCK_EX | LOCK_NB) || fstat(make->part.fd, &mine) ||
        stat(make->part.path, &named) || mine.st_ino != named.st_ino)
        return ENG_FAIL(err, ENG_IO, "%s: another process is writing it", make->path);
    if (!S_ISREG(mine.st_mode))
        return ENG_FAIL(err, ENG_IO, "%s: not a regular file, left alone", make->part.path);
    return is_part(make->part.fd) ? ENG_OK : left_alone(make->part.path, "no part of a table", err);
}

/* Whether PATH.part is a killed call's with the same source; reads its checksums then. */
static bool can_resume(Make *make)
{
    uint8_t found[ENG_TABLE_FILE_PAGE], page[ENG_TABLE_FILE_PAGE];
    char digest[ENG_KEY_HEX];
    struct stat st;
    const EngTableFile *part = &make->part;
    if (fstat(part->fd, &st) || (uint64_t)st.st_size != part->file_bytes) return false;
    if (eng_file_read_at(part->fd, part->path, found, sizeof found, 0, NULL)) return false;
    if (eng_file_read_at(part->fd, part->path, part->checks, eng_table_checks_bytes(part),
                         eng_table_checks_offset(part), NULL))
        return false;
    /* A finished header no longer tells the state of the source. */
    for (int finished = 0; finished < (make->source->state ? 1 : 2); finished++)
        if (!make_page(make, finished, page, digest, NULL) && !memcmp(page, found, sizeof page))
            return true;
    memset(part->checks, 0, eng_table_checks_bytes(part));
    return false;
}

/* An empty file with room for everything: a disk that is too small is known at once. */
static EngStatus start_part(Make *make, EngErr *err)
{
    uint8_t page[ENG_TABLE_FILE_PAGE];
    char digest[ENG_KEY_HEX];
    int fd = make->part.fd;
    off_t bytes = (off_t)make->part.file_bytes;
    EngStatus status = make_page(make, false, page, digest, err);
    if (status) return status;
    if (ftruncate(fd, 0)) return part_failed(make, "empty it", err);
    if (fallocate(fd, 0, 0, bytes) && errno != EOPNOTSUPP && errno != ENOSYS)
        return ENG_FAIL(err, ENG_IO, "%s: cannot write its %" PRIu64 " bytes: %s", make->path,
                        make->part.file_bytes, strerror(errno));
    if (ftruncate(fd, bytes)) return part_failed(make, "size it", err);
    return eng_file_write_at(fd, make->path, page, sizeof page, 0, err);
}

/* ---- blocks ---- */

/* A block of an earlier call counts when what is in the file has its checksum. */
static bool is_there(const Make *make, int64_t block, uint8_t *buffer, size_t n, uint64_t offset)
{
    static const uint8_t none[ENG_TABLE_FILE_CHECK_BYTES];
    const uint8_t *check = make->part.checks + block * ENG_TABLE_FILE_CHECK_BYTES;
    return make->resume && memcmp(check, none, sizeof none) &&
           !eng_file_read_at(make->part.fd, make->path, buffer, n, offset, NULL) &&
           !eng_table_file_check(&make->part, block, buffer, NULL);
}

static EngStatus write_block(Make *make, int64_t block, uint8_t *buffer, EngErr *err)
{
    EngTableFile *part = &make->part;
    bool scales = block >= part->value_blocks;
    uint8_t *check = part->checks + block * ENG_TABLE_FILE_CHECK_BYTES;
    uint64_t offset;
    size_t n;
    int64_t first, last;
    eng_table_file_block(part, block, &offset, &n, &first, &last);
    if (is_there(make, block, buffer, n, offset)) {
        atomic_fetch_add(&make->resumed, 1);
        return ENG_OK;
    }
    uint64_t at = offset - (scales ? part->scales_offset : part->values_offset);
    EngStatus status = make->source->read(make->source->context, scales, at, n, buffer, err);
    if (!status) status = eng_digest_raw(buffer, n, check, err);
    if (!status) status = eng_file_write_at(part->fd, make->path, buffer, n, offset, err);
    if (!status)
        status = eng_file_write_at(
            part->fd, make->path, check, ENG_TABLE_FILE_CHECK_BYTES,
            eng_table_checks_offset(part) + (uint64_t)block * ENG_TABLE_FILE_CHECK_BYTES, err);
    return status;
}

static void tell_progress(Make *make, int64_t n)
{
    int_fast64_t done = atomic_fetch_add(&make->done, 1) + 1, now = eng_now_ns();
    int_fast64_t told = atomic_load(&make->told_ns);
    if (now - told < PROGRESS_NS || !atomic_compare_exchange_strong(&make->told_ns, &told, now))
        return;
    eng_info("store", "%s: %" PRIdFAST64 " of %" PRId64 " blocks", make->path, done, n);
}

static void write_blocks(void *context, int64_t worker)
{
    Make *make = context;
    int64_t n = make->part.value_blocks + make->part.scale_blocks;
    for (int64_t block;
         !atomic_load(&make->stop) && (block = atomic_fetch_add(&make->next, 1)) < n;) {
        EngErr err = {0};
        EngStatus status = write_block(make, block, make->buffers[worker], &err);
        if (!status) {
            tell_progress(make, n);
            continue;
        }
        pthread_mutex_lock(&make->lock);
        if (!make->err.status) ENG_FAIL(&make->err, status, "%s", err.text);
        pthread_mutex_unlock(&make->lock);
        atomic_store(&make->stop, true);
    }
}

static EngStatus write_all(Make *make, EngErr *err)
{
    atomic_store(&make->told_ns, eng_now_ns());
    pthread_mutex_init(&make->lock, NULL);
    eng_parallel_for(make->threads, make->threads, write_blocks, make);
    pthread_mutex_destroy(&make->lock);
    return make->err.status ? ENG_FAIL(err, make->err.status, "%s", make->err.text) : ENG_OK;
}

/* ---- creation ---- */

/* As rename(), but EEXIST where `path` is there. A file system may know neither this nor links:
 * then one that comes between the last two calls is replaced. */
static int rename_new(const char *part, const char *path)
{
    struct stat st;
    int done = renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE);
    if (!done || (errno != EINVAL && errno != ENOSYS)) return done;
    if (!link(part, path)) {
        unlink(part);
        return 0;
    }
    if (errno != EEXIST && lstat(path, &st)) return rename(part, path);
    errno = EEXIST;
    return -1;
}

/* Gives PATH.part its name, which a file may have taken meanwhile. */
static EngStatus rename_part(const Make *make, EngErr *err)
{
    if (!rename_new(make->part.path, make->path)) return ENG_OK;
    return errno == EEXIST ? left_alone(make->path, "exists", err)
                           : part_failed(make, "rename it", err);
}

/* Data reach the disk before the header says that they are there, that before the name does. */
static EngStatus finish(Make *make, char digest[ENG_KEY_HEX], EngErr *err)
{
    uint8_t page[ENG_TABLE_FILE_PAGE];
    EngStatus status = make_page(make, true, page, digest, err);
    if (!status && fsync(make->part.fd)) status = part_failed(make, "write it", err);
    if (!status) status = eng_file_write_at(make->part.fd, make->path, page, sizeof page, 0, err);
    if (!status && fsync(make->part.fd)) status = part_failed(make, "write it", err);
    eng_kill_point("rename");
    return status ? status : rename_part(make, err);
}

static EngStatus prepare(Make *make, EngErr *err)
{
    EngTableFile *part = &make->part;
    size_t n = strlen(make->path) + sizeof ".part";
    EngStatus status = eng_table_layout(part, err);
    if (!status) status = eng_alloc_or((void **)&part->path, n, 1, "a path", err);
    if (!status) snprintf(part->path, n, "%s.part", make->path);
    if (!status)
        status = eng_alloc_or((void **)&part->checks, eng_table_checks_bytes(part), 1,
                              "block checksums", err);
    if (!status)
        status = eng_alloc_or((void **)&make->buffers, (size_t)make->threads, sizeof *make->buffers,
                              "buffers", err);
    for (int i = 0; i < make->threads && !status; i++)
        status =
            eng_alloc_or((void **)&make->buffers[i], ENG_TABLE_FILE_BLOCK_BYTES, 1, "a block", err);
    return status;
}

EngStatus eng_table_file_create(const char *path, const EngTableSource *source, int threads,
                                EngTableCreated *created, EngErr *err)
{
    struct stat st;
    bool ours = false; /* PATH.part is locked by us */
    char digest[ENG_KEY_HEX];
    Make make = {.source = source,
                 .path = path,
                 .threads = threads > 0 ? threads : eng_processor_count(),
                 .part = {.fd = -1,
                          .format = source->format,
                          .row_dims = source->row_dims,
                          .rows = source->rows}};
    if (!lstat(path, &st)) return left_alone(path, "exists", err);
    EngStatus status = prepare(&make, err);
    if (!status) status = open_part(&make, err);
    if (status) goto done;
    ours = true;
    make.resume = can_resume(&make);
    if (!make.resume) status = start_part(&make, err);
    if (!status) status = write_all(&make, err);
    if (!status) status = finish(&make, digest, err);
    if (status || !created) goto done;
    *created = (EngTableCreated){.blocks = make.part.value_blocks + make.part.scale_blocks,
                                 .resumed = atomic_load(&make.resumed)};
    memcpy(created->digest, digest, sizeof digest);
done:
    if (status && ours) unlink(make.part.path);
    for (int i = 0; make.buffers && i < make.threads; i++) eng_free(make.buffers[i]);
    eng_free(make.buffers);
    eng_table_file_close(&make.part);
    return status;
}

/* ---- seeded ---- */

typedef struct Seeded {
    EngContent content;
    int row_dims;
} Seeded;

static EngStatus read_seeded(const void *context, bool scales, uint64_t at, size_t n, uint8_t *out,
                             EngErr *err)
{
    const Seeded *seeded = context;
    (void)err;
    if (scales) {
        eng_content_scales(&seeded->content, at, n, out);
        return ENG_OK;
    }
    eng_content_values(&seeded->content, at, n, out);
    eng_content_row_scales(&seeded->content, seeded->row_dims, at, n, out);
    return ENG_OK;
}

EngStatus eng_table_file_create_seeded(const char *path, EngRowFormat format, int row_dims,
                                       int64_t rows, uint64_t seed, int threads,
                                       EngTableCreated *created, EngErr *err)
{
    char identity[96];
    Seeded seeded = {.row_dims = row_dims};
    EngTableSource source = {.format = format,
                             .row_dims = row_dims,
                             .rows = rows,
                             .identity = identity,
                             .read = read_seeded,
                             .context = &seeded};
    snprintf(identity, sizeof identity, "{\"content\":\"seeded random rows\",\"seed\":%" PRIu64 "}",
             seed);
    EngStatus status = eng_content_create(&seeded.content, format, seed, err);
    if (!status) status = eng_table_file_create(path, &source, threads, created, err);
    eng_content_destroy(&seeded.content);
    return status;
}

/* perigee.h: the C surface of Perigee, an INT8 inference engine for BERT-family encoders on CPUs.
 *
 * This is the only public header, for C11 and C++11. LuaJIT's FFI reads the same text without the lines that begin with '#' and
 * without what is for C++ alone.
 *
 * Conventions
 *   - A function that can fail returns a status: PGEE_OK, or what kind of failure it was. It writes its results through pointers.
 *     After a failure pgee_message() says what was wrong and what was expected. The results are then unchanged, unless the
 *     function's comment says something else.
 *   - X_new and X_open create a handle; the caller owns it and frees it with X_free. A handle is reference counted if another one
 *     may need it: a view holds its base, a plan holds its weights. X_free(NULL) does nothing.
 *   - A pointer may be NULL only if the comment says so. For another NULL, a function that returns a status returns PGEE_ARGUMENT
 *     and names the argument; a function that reads a property of a handle returns 0 or NULL, or -1 if 0 is a possible value.
 *   - Compute functions never allocate results. The library never prints, never exits and never calls back. It aborts in one
 *     case: a handle is freed twice or was overwritten, so that the heap is damaged.
 *   - Several threads may read a handle at the same time. While one thread changes or frees a handle, no other may use it.
 *
 * Shapes: T tokens in the batch, B sequences, S longest sequence, H hidden, I intermediate, A heads, D head size,
 * K in-features, N out-features, R marked tokens. Matrices are row-major; [T][H] is T rows of H. Sizes are in elements, unless
 * the name or the comment says bytes. rne(x): x rounded to the nearest integer, ties to even.
 */
#ifndef PERIGEE_H
#define PERIGEE_H
#include <stdint.h>

/* The version; the Makefile reads it from here. Its first number is that of the SONAME, libperigee.so.0. */
#define PGEE_VERSION "0.1.0"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and version ------------------------------------------------------------------------------------------- */

enum {
  PGEE_OK = 0,
  PGEE_MEMORY = 1,      /* an allocation failed */
  PGEE_ARGUMENT = 2,    /* an argument has a value, shape or type that the function does not accept */
  PGEE_SYSTEM = 3,      /* the operating system refused: a file is missing, a thread could not start */
  PGEE_FORMAT = 4,      /* the content of a file does not follow its format */
  PGEE_UNSUPPORTED = 5, /* valid, but this library or this CPU does not support it */
  PGEE_INTERRUPTED = 6  /* pgee_interrupt was called. A workspace can be run again */
};

/* The message of the last failure in the calling thread, "" if there was none. Never NULL; valid until the thread's next
 * failure. */
const char *pgee_message(void);
/* PGEE_VERSION of the loaded library: "0.1.0". */
const char *pgee_version(void);
/* The text of this header for LuaJIT's FFI: without lines that begin with # and without what is for C++. */
const char *pgee_header(void);

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

/* Bytes that the library has allocated now. Mapped files and oneDNN's memory are not counted. */
int64_t pgee_live_bytes(void);
/* The maximum of pgee_live_bytes since the process began or pgee_peak_reset was called. */
int64_t pgee_peak_bytes(void);
void pgee_peak_reset(void);
/* asked: bytes in memory for which the library asked for huge pages. *granted: bytes that Linux gave in huge pages; this can be
 * more than *asked, because only whole pages are given. *granted is 0 if transparent huge pages are switched off
 * (/sys/kernel/mm/transparent_hugepage/enabled: never), and -1 if /proc/self/smaps cannot be read. */
int pgee_huge_pages(int64_t *asked, int64_t *granted);

/* ---- CPU ---------------------------------------------------------------------------------------------------------- */

/* The instruction sets (ISAs) that there are kernels for, slowest first. PGEE_AMX_MODEL runs the AMX kernels on a portable
 * model of the tile instructions: slow, for tests on CPUs without AMX. */
enum {
  PGEE_REF = 0,
  PGEE_AVX2 = 1,
  PGEE_AVXVNNI = 2,
  PGEE_AVX512VNNI = 3,
  PGEE_AMX = 4,
  PGEE_AMX_MODEL = 5,
  PGEE_ISAS = 6,
};

/* The name of an ISA as the environment variable PERIGEE_ISA takes it, such as "avx2"; NULL for another number. */
const char *pgee_isa_name(int isa);
/* 1 if the CPU and the operating system can run this ISA, else 0. For PGEE_AMX the function asks Linux for the tile registers:
 * from then on the process needs alternate signal stacks (sigaltstack) of at least getauxval(AT_MINSIGSTKSZ) bytes, about 11
 * KiB. */
int pgee_isa_runs(int isa);
/* Why this ISA cannot run here; "" if nothing speaks against it. Asks Linux for nothing, so that PGEE_AMX may still fail to
 * run. */
const char *pgee_isa_reason(int isa);
/* The ISA in force: the one that the environment variable PERIGEE_ISA names, by default the fastest that runs (see
 * pgee_isa_runs). PGEE_ARGUMENT if PERIGEE_ISA is no name of an ISA, PGEE_UNSUPPORTED if the CPU cannot run it. */
int pgee_isa(int *isa);
/* Sets the ISA in force, for the whole process. PGEE_UNSUPPORTED if it cannot run here. */
int pgee_isa_set(int isa);
/* The model name of the CPU, as the operating system gives it. */
const char *pgee_cpu_name(void);

enum { PGEE_PEAK_INT8 = 0, PGEE_PEAK_F32 = 1, PGEE_PEAK_READ = 2, PGEE_PEAK_BF16 = 3, PGEE_PEAK_L2 = 4, PGEE_PEAK_L3 = 5 };
/* Measures the peak speed of all threads in force together; the best of `tries` measurements. For benchmarks. PGEE_PEAK_INT8,
 * PGEE_PEAK_F32, PGEE_PEAK_BF16: operations per second of the multiply instruction (u8 x s8, FP32, or BF16) of the ISA in force, on
 * registers only; a multiply-add is two operations; 0 if the ISA or the CPU has no such instruction. PGEE_PEAK_READ, PGEE_PEAK_L2,
 * PGEE_PEAK_L3: bytes per second read from memory, from the second-level cache and from the third-level cache; 0 if the size of the
 * cache is not known, or if a thread's part of the third-level cache is no larger than a second-level cache. */
int pgee_cpu_peak(int what, int tries, double *per_second);

/* ---- Threads ------------------------------------------------------------------------------------------------------ */

/* The maximum number of threads that a run uses. It is what pgee_threads_set set, else the environment variable PERIGEE_THREADS,
 * else one thread for each physical core in the affinity mask, but no more than the CPU quota of the cgroup. PGEE_ARGUMENT if
 * PERIGEE_THREADS is no number from 1 to 256. */
int pgee_threads(int *threads);
/* Sets the maximum number of threads that a run uses, 1 to 256, for the whole process. */
int pgee_threads_set(int threads);
/* pgee_interrupt(1), or another number except 0: every run, also one in progress in another thread, stops before its next step
 * with PGEE_INTERRUPTED. pgee_interrupt(0) ends that state. A signal handler may call it, for example with the signal's number. */
void pgee_interrupt(int on);
/* The last argument of pgee_interrupt; 0 if it was never called. */
int pgee_interrupted(void);
/* The time of a monotonic clock, in seconds. */
double pgee_seconds(void);

/* ---- Tensors ------------------------------------------------------------------------------------------------------ */

enum {
  PGEE_F32 = 0,
  PGEE_F16 = 1,
  PGEE_BF16 = 2,
  PGEE_U8 = 3,
  PGEE_S8 = 4,
  PGEE_S32 = 5,
  PGEE_S64 = 6,
  PGEE_F64 = 7,
  PGEE_BOOL = 8,
  PGEE_DTYPES = 9
};
/* How a tensor counts its rows. PGEE_FIXED: its shape says how many. The others are for a plan's buffers: one row for each
 * token of the batch, for each sequence, or for each marked token. */
enum { PGEE_FIXED = 0, PGEE_TOKENS = 1, PGEE_SEQUENCES = 2, PGEE_MARKED = 3 };
enum { PGEE_MAX_DIMS = 4 };

typedef struct pgee_tensor pgee_tensor;

/* The name of a type in safetensors files: "F32", "F16", "I32" for PGEE_S32, ...; NULL for another number. */
const char *pgee_dtype_name(int dtype);
/* Bytes of one element of this type; 0 for another number. */
int pgee_dtype_bytes(int dtype);

/* A new tensor of zeros with its own memory, aligned to 64 bytes. ndim: 1 to 4; each dimension is 0 or more. The rows of a
 * PGEE_U8 matrix begin at multiples of 64 bytes, because the kernels read whole blocks of 64; every other tensor is dense. */
int pgee_tensor_new(pgee_tensor **out, int dtype, int ndim, const int64_t *shape);
/* A view of rows `begin` to `end` - 1 (indices of the first dimension, from 0). It shares the memory of `base` and holds it. */
int pgee_tensor_rows(pgee_tensor **out, const pgee_tensor *base, int64_t begin, int64_t end);
/* A view of row i (from 0) of a tensor of 2 to 4 dimensions, with one dimension less. It shares the memory of `base` and holds
 * it. */
int pgee_tensor_row(pgee_tensor **out, const pgee_tensor *base, int64_t i);
/* A dense copy of any type as F32. F16 and BF16 convert exactly, denormals too; other types round to the nearest float. */
int pgee_tensor_f32(pgee_tensor **out, const pgee_tensor *base);
/* A copy in memory for which transparent huge pages are asked: for weights, since fewer pages need fewer entries of the TLB. */
int pgee_tensor_huge(pgee_tensor **out, const pgee_tensor *base);
/* Releases one reference; the memory is freed with the last one. */
void pgee_tensor_free(pgee_tensor *t);

/* The type, PGEE_F32 to PGEE_BOOL. */
int pgee_tensor_dtype(const pgee_tensor *t);
/* The number of dimensions. */
int pgee_tensor_ndim(const pgee_tensor *t);
/* The size of dimension i (from 0); 0 if there is no such dimension. */
int64_t pgee_tensor_dim(const pgee_tensor *t, int i);
/* The distance from the beginning of one row (index of the first dimension) to the next, in elements; 1 for a vector. */
int64_t pgee_tensor_stride(const pgee_tensor *t);
/* The first element. NULL for a plan's buffer, which has memory only in a workspace. */
void *pgee_tensor_data(const pgee_tensor *t);
/* 1 if the elements can be changed; 0 if they are part of a mapped file, which can only be read. */
int pgee_tensor_writable(const pgee_tensor *t);
/* The index, in row-major order from 0, of the first NaN or infinity in an F32, F16 or BF16 tensor; -1 if there is none. */
int64_t pgee_tensor_nonfinite(const pgee_tensor *t);
/* Copies `count` numbers at `from` (any alignment) of type PGEE_F32, PGEE_F16, PGEE_BF16 or PGEE_F64 to `to` as doubles. `to`
 * may be `from` if dtype is PGEE_F64. Every NaN becomes 0x7ff8000000000000, because LuaJIT stores the type of a value in the
 * bits of a NaN: if the FFI loaded another NaN, Lua would take it for a table, a string or a function. */
int pgee_numbers(double *to, const void *from, int dtype, int64_t count);
/* 1 if types, shapes and all bits of the elements are equal, else 0. 0 for NULL and for buffers of a plan. */
int pgee_tensor_equal(const pgee_tensor *a, const pgee_tensor *b);

/* The signal-to-quantization-noise ratio, in dB, of `test` (elements t) against `reference` (elements r), both F32 and of one
 * shape: 10 log10(sum r^2 / sum (r-t)^2), summed in double. Infinity if both are equal; NaN if `reference` is all zeros and
 * `test` is not. */
int pgee_sqnr(double *db, const pgee_tensor *reference, const pgee_tensor *test);

/* ---- Safetensors -------------------------------------------------------------------------------------------------- */

typedef struct pgee_safetensors pgee_safetensors;

/* Opens a safetensors file: maps it read-only and checks the whole header. PGEE_SYSTEM if the file cannot be read, PGEE_FORMAT
 * if it is malformed. Nobody may change the file while it is mapped; if it becomes shorter, reading the lost part kills the
 * process (SIGBUS). To replace the file, rename a new one to its name. */
int pgee_safetensors_open(pgee_safetensors **out, const char *path);
/* The same, but reads the file into memory, so that later changes of the file have no effect. */
int pgee_safetensors_read(pgee_safetensors **out, const char *path);
/* Tensors of the file stay valid: they hold its bytes. */
void pgee_safetensors_free(pgee_safetensors *f);
/* The size of the file in bytes. */
int64_t pgee_safetensors_bytes(const pgee_safetensors *f);
/* The number of tensors. */
int64_t pgee_safetensors_count(const pgee_safetensors *f);
/* The name of tensor i (from 0, in the order of the header); NULL if there is no such tensor. */
const char *pgee_safetensors_name(const pgee_safetensors *f, int64_t i);
/* A tensor by its name: a view of the file's bytes, or a copy if their address is not a multiple of the size of the type. A
 * tensor without dimensions becomes a vector of 1. PGEE_ARGUMENT if there is no such tensor; PGEE_UNSUPPORTED if it has more
 * than 4 dimensions or a type that pgee_tensor does not have. */
int pgee_safetensors_tensor(pgee_tensor **out, const pgee_safetensors *f, const char *name);
/* The value of a key of __metadata__; NULL if there is no such key. Valid until the handle is freed. */
const char *pgee_safetensors_metadata(const pgee_safetensors *f, const char *key);

/* Writes `count` tensors with their names. `metadata` has `pairs` pairs for __metadata__: key, value, key, value, ...
 *
 * Equal arguments give equal bytes. Names and keys are in the order of their bytes, rows are dense, and every tensor begins at
 * a multiple of 64 bytes: if need be, a U8 tensor NAME.filler fills the space after tensor NAME. The last tensor is
 * `checksums`, I32: the CRC-32 of everything before the data, then of each tensor in the order of their offsets (fillers too),
 * then zeros up to a multiple of 16 values, of which the last one is the CRC-32 of all values before it.
 *
 * `path` is replaced whole or not at all. The bytes go to a new file in the same folder, are flushed to the disk, and the new
 * file is then renamed to `path`. It gets the owner and the permissions of an existing file, which this process must be allowed
 * to write to. If `path` is a symbolic link, its target is replaced. A killed process may leave a file .NAME.saving-*, which
 * the next write of NAME removes. PGEE_ARGUMENT for two equal names or keys or an invalid text, PGEE_SYSTEM if the file cannot
 * be written. */
int pgee_safetensors_write(const char *path, const char *const *names, const pgee_tensor *const *tensors, int64_t count,
                           const char *const *metadata, int64_t pairs);
/* Checks a file that pgee_safetensors_write wrote: the checksum of the header, the checksum of each tensor of at most `bytes`
 * bytes (-1: of every tensor), and that tensors begin at multiples of 64. PGEE_FORMAT names the first part that is wrong. */
int pgee_safetensors_verify(const pgee_safetensors *f, int64_t bytes);
/* The stored checksum of a tensor, or of the header if name is NULL. PGEE_ARGUMENT if there is no such tensor. */
int pgee_safetensors_checksum(const pgee_safetensors *f, const char *name, uint32_t *stored);

/* ---- Tokenizer ---------------------------------------------------------------------------------------------------- */

/* A tokenizer turns a text into ids in five steps, as the tokenizers package does: added tokens are cut out; normalizers change
 * the text; pre-tokenizers cut it into words; the model cuts each word into pieces; a template puts special tokens around the
 * text. */
typedef struct pgee_tokenizer pgee_tokenizer;

enum { PGEE_WORDPIECE = 1, PGEE_UNIGRAM = 2, PGEE_BPE = 3 };

/* Kinds of steps, with the names that they have in tokenizer.json. Each comment lists the fields of pgee_tokenizer_step that the
 * step reads, with the option of tokenizer.json that they hold. */
enum {
  /* normalizers */
  PGEE_STEP_BERT_NORMALIZER = 1, /* a: clean_text, b: handle_chinese_chars, c: strip_accents, d: lowercase */
  PGEE_STEP_NFC = 2,
  PGEE_STEP_NFD = 3,
  PGEE_STEP_NFKC = 4,
  PGEE_STEP_NFKD = 5,
  PGEE_STEP_LOWERCASE = 6,
  PGEE_STEP_STRIP_ACCENTS = 7,
  PGEE_STEP_STRIP = 8,    /* a: left, b: right */
  PGEE_STEP_REPLACE = 9,  /* text: pattern, a: it is a regular expression; more: content. Also a decoder */
  PGEE_STEP_PREPEND = 10, /* text */
  PGEE_STEP_NMT = 11,
  PGEE_STEP_BYTE_LEVEL_NORMALIZER = 12, /* ByteLevel as a normalizer */
  PGEE_STEP_PRECOMPILED = 13,           /* by the definition's charsmap; at most one */
  /* pre-tokenizers */
  PGEE_STEP_BERT_PRE_TOKENIZER = 20,
  PGEE_STEP_WHITESPACE = 21,
  PGEE_STEP_WHITESPACE_SPLIT = 22,
  PGEE_STEP_PUNCTUATION = 23,    /* a: behavior */
  PGEE_STEP_DIGITS = 24,         /* a: individual_digits */
  PGEE_STEP_SPLIT = 25,          /* text: pattern, a: it is a regular expression, b: behavior, c: invert */
  PGEE_STEP_METASPACE = 26,      /* a: replacement, a code point, b: PGEE_PREPEND_..., c: split. Also a decoder */
  PGEE_STEP_BYTE_LEVEL = 27,     /* a: add_prefix_space, b: use_regex. Also a decoder */
  PGEE_STEP_CHAR_DELIMITER = 28, /* a: delimiter, a code point */
  PGEE_STEP_FIXED_LENGTH = 29,   /* a: length in characters */
  /* decoders */
  PGEE_STEP_DECODE_WORDPIECE = 40, /* text: prefix, a: cleanup */
  PGEE_STEP_DECODE_BPE = 41,       /* text: suffix */
  PGEE_STEP_DECODE_FUSE = 42,
  PGEE_STEP_DECODE_STRIP = 43, /* a: content, a code point, b: start, c: stop */
  PGEE_STEP_BYTE_FALLBACK = 44 /* ByteFallback */
};
enum { PGEE_REMOVED = 0, PGEE_ISOLATED = 1, PGEE_MERGED_WITH_PREVIOUS = 2, PGEE_MERGED_WITH_NEXT = 3, PGEE_CONTIGUOUS = 4 };
enum { PGEE_PREPEND_NEVER = 0, PGEE_PREPEND_FIRST = 1, PGEE_PREPEND_ALWAYS = 2 };

typedef struct pgee_tokenizer_step {
  int32_t kind, a, b, c, d;
  const char *text, *more; /* UTF-8 */
  int64_t text_bytes, more_bytes;
} pgee_tokenizer_step;

/* An added token: a text that is one token wherever it occurs, such as [SEP].
 *   normalized    0: encoding looks for `text` in the text as it is. 1: encoding normalizes both first
 *   single_word   encoding does not find the token inside a word
 *   lstrip, rstrip   the token takes the white space on its left, on its right
 *   special       decoding leaves the token out */
typedef struct pgee_added_token {
  const char *text;
  int64_t bytes;
  int32_t id; /* -1: the id of the piece with this text; if there is no such piece, the next free id from `count` on */
  int32_t normalized, single_word, lstrip, rstrip, special;
  int32_t shown_normalized; /* decoding shows the normalized text, but `text` is looked for. Implied by `normalized` */
} pgee_added_token;

/* A part of a template: the special token `id`, or all tokens of a text if id is PGEE_TEXT_A (first text) or PGEE_TEXT_B
 * (second text). type: the token type of these tokens. */
typedef struct pgee_template_piece {
  int32_t id, type;
} pgee_template_piece;
enum { PGEE_TEXT_A = -1, PGEE_TEXT_B = -2 };

/* What a tokenizer is made of. Zero is a good default for every field. Fields that a model does not read may have any value.
 * pgee_tokenizer_new copies everything. */
typedef struct pgee_tokenizer_definition {
  int32_t model; /* PGEE_WORDPIECE, PGEE_UNIGRAM, PGEE_BPE */
  /* Piece i is the UTF-8 text pieces[ends[i - 1]] to pieces[ends[i] - 1] (piece 0 begins at 0). Its id is ids[i] >= 0, or i if
   * ids is NULL. If pieces are equal, the last one counts. */
  const char *pieces;
  const int64_t *ends;
  const int32_t *ids;
  int64_t count;
  int32_t unk;            /* id of the unknown token, -1: none. WordPiece needs one */
  int32_t max_word_chars; /* WordPiece: a word with more characters is unknown */
  const char *prefix,
      *suffix;          /* prefix of pieces inside a word, "##" (WordPiece, BPE); suffix of pieces at its end (BPE). NULL: none */
  const double *scores; /* Unigram [count] */
  const int32_t *merges; /* BPE [merge_count][3], first merge first: ids of the left piece, the right piece and the result */
  int64_t merge_count;
  int32_t byte_fallback;           /* Unigram, BPE */
  int32_t fuse_unk, ignore_merges; /* BPE */
  const char *charsmap;            /* of PGEE_STEP_PRECOMPILED */
  int64_t charsmap_bytes;
  const pgee_tokenizer_step *normalizers, *pre_tokenizers, *decoders; /* run in this order; at most 64 of each */
  int64_t normalizer_count, pre_tokenizer_count, decoder_count;
  int32_t trim_offsets, add_prefix_space; /* of the byte-level post-processors */
  int32_t left;                           /* 1: truncation cuts texts off at their beginning, if a call does not choose a side */
  const pgee_template_piece *single,
      *pair; /* templates for one text and for a pair. NULL: only the texts, the second with type 1 */
  int64_t single_count, pair_count;
  const pgee_added_token *added;
  int64_t added_count;
  const char *const *specials; /* [5] or NULL: texts of unk, cls, sep, pad, mask, each may be NULL; see pgee_tokenizer_specials */
  const int32_t *special_ids;  /* [5] or NULL: their ids; -1: the id of the text in `specials` */
} pgee_tokenizer_definition;

/* Builds a tokenizer. PGEE_ARGUMENT for a value out of range or a text that is not UTF-8; PGEE_UNSUPPORTED for a regular
 * expression or a size that is not supported; PGEE_FORMAT for a damaged charsmap. */
int pgee_tokenizer_new(pgee_tokenizer **out, const pgee_tokenizer_definition *definition);
void pgee_tokenizer_free(pgee_tokenizer *t);

/* The image of a tokenizer, U8 [bytes]: one block of bytes that holds everything the tokenizer needs, without pointers,
 * little-endian. Equal definitions give equal images. The result is a view. */
int pgee_tokenizer_image(pgee_tensor **out, const pgee_tokenizer *t);
/* A tokenizer that runs from an image, U8 [bytes] at an address that is a multiple of 8, and holds it. Nothing is copied or
 * parsed. PGEE_FORMAT if the image is damaged. A damaged image never leads to a read outside of it. */
int pgee_tokenizer_from_image(pgee_tokenizer **out, const pgee_tensor *image);

/* The model: PGEE_WORDPIECE, PGEE_UNIGRAM or PGEE_BPE. */
int64_t pgee_tokenizer_model(const pgee_tokenizer *t);
/* The number of ids that have a text: pieces and added tokens. */
int64_t pgee_tokenizer_size(const pgee_tokenizer *t);
/* The largest id plus 1. */
int64_t pgee_tokenizer_ids(const pgee_tokenizer *t);
/* The number of special tokens that the template adds to one text (pair = 0) or to a pair (pair = 1). */
int64_t pgee_tokenizer_special_count(const pgee_tokenizer *t, int pair);
/* Writes the ids of unk, cls, sep, pad, mask to out[5]; -1 for a token that the tokenizer does not have. */
int pgee_tokenizer_specials(const pgee_tokenizer *t, int32_t *out);
/* 1 if truncation cuts texts off at their beginning by default, 0 if at their end. */
int pgee_tokenizer_left(const pgee_tokenizer *t);
/* The prefix of pieces inside a word, "##"; "" if there is none. */
const char *pgee_tokenizer_prefix(const pgee_tokenizer *t);
/* The text of a piece or an added token by its id, as UTF-8 of *bytes bytes without a zero at its end; NULL if there is no such
 * id. */
const char *pgee_tokenizer_piece(const pgee_tokenizer *t, int64_t id, int64_t *bytes);
/* The id of the added token with this text, else of the piece with this text; -1 if there is none. */
int32_t pgee_tokenizer_id(const pgee_tokenizer *t, const char *text, int64_t bytes);

/* The tokens of one or two texts, in arrays of the caller. */
typedef struct pgee_encoding {
  int32_t *ids;       /* [capacity] */
  int32_t *types;     /* [capacity] token types, from the template; BERT's: 0 first text, 1 second text and the [SEP] after it */
  int32_t *offsets;   /* [capacity][2] or NULL: where the token begins and ends in its text; 0, 0 for a token of the template */
  int64_t capacity;   /* the number of tokens that the arrays can hold */
  int64_t length;     /* out: tokens written */
  int64_t dropped;    /* out: tokens that were cut off because of max_tokens */
  int32_t *sequences; /* [capacity] or NULL: 1 first text, 2 second text, 0 for a token of the template */
  int32_t *words;     /* [capacity] or NULL: index of the token's word in its text, -1 for a token of the template */
} pgee_encoding;

/* A text. If word_ends is given, the caller has cut the text into words: word i is bytes[word_ends[i - 1]] to
 * bytes[word_ends[i] - 1]. Each word is then encoded by itself, and offsets count from the beginning of the word. */
typedef struct pgee_text {
  const char *bytes; /* UTF-8, at most 2^31 - 4 bytes, without a zero at the end; a byte that is not valid counts as U+FFFD */
  int64_t count;
  const int64_t *word_ends; /* [words] or NULL */
  int64_t words;
} pgee_text;

enum { PGEE_TRUNCATE_LONGEST = 0, PGEE_TRUNCATE_FIRST = 1, PGEE_TRUNCATE_SECOND = 2 };
enum { PGEE_SIDE_DEFAULT = 0, PGEE_SIDE_RIGHT = 1, PGEE_SIDE_LEFT = 2 };

/* Zero is the default of every field but max_tokens. */
typedef struct pgee_encode_options {
  int64_t max_tokens; /* special tokens included */
  int32_t truncate;   /* which text is cut. PGEE_TRUNCATE_LONGEST: the longer one until both are equal, then both */
  int32_t bare;       /* 1: add no special tokens */
  int32_t characters; /* 1: offsets count characters; 0: bytes */
  int32_t side;       /* PGEE_SIDE_RIGHT: cut the ends of texts; PGEE_SIDE_DEFAULT: as the tokenizer's definition says */
} pgee_encode_options;

/* Encodes the text a, or the pair a and b if b is not NULL, as the tokenizers package does. The arrays of e are large enough if
 * they hold max_tokens; for WordPiece after BertNormalizer it is also enough if they hold as many tokens as the texts have
 * bytes, and the special tokens. PGEE_ARGUMENT if the arrays are too small (e->length is then the number of tokens), if
 * max_tokens is less than the number of special tokens, or if the text to be cut would have no token left. After a failure the
 * arrays are undefined. */
int pgee_tokenizer_encode_texts(const pgee_tokenizer *t, pgee_encoding *e, const pgee_text *a, const pgee_text *b,
                                const pgee_encode_options *options);
/* The same for texts that are not cut into words, with default options. b may be NULL. */
int pgee_tokenizer_encode(const pgee_tokenizer *t, pgee_encoding *e, const char *a, int64_t a_bytes, const char *b,
                          int64_t b_bytes, int64_t max_tokens);
/* Decodes `count` ids to a text. special = 0 leaves special tokens out. Writes at most `capacity` bytes of UTF-8 to `out`, and
 * the size of the whole text to *bytes. PGEE_ARGUMENT for an id that the tokenizer does not have. */
int pgee_tokenizer_decode(const pgee_tokenizer *t, const int32_t *ids, int64_t count, int special, char *out, int64_t capacity,
                          int64_t *bytes);

/* The pieces of a Unigram vocabulary: piece i is bytes[ends[i - 1]] to bytes[ends[i] - 1]. */
typedef struct pgee_vocabulary {
  const char *bytes;
  const int64_t *ends;  /* [count] */
  const double *scores; /* [count] */
  int64_t count;
  int64_t begin, end; /* the list is text[begin] to text[end - 1] */
} pgee_vocabulary;

/* Reads the list model.vocab, pieces and scores, from the text of a tokenizer.json; *out is NULL if there is no such list.
 * Nothing else of the text is checked. Scores are rounded as the tokenizers package rounds them, which is not always to the
 * nearest double. `path` is for messages. PGEE_FORMAT if the list is malformed. */
int pgee_vocabulary_json(pgee_vocabulary **out, const char *path, const char *text, int64_t bytes);
void pgee_vocabulary_free(pgee_vocabulary *v);

/* The lower case of a code point in the tokenizers' tables; the code point itself if its lower case is not one code point. */
uint32_t pgee_character_lower(uint32_t c);
/* Kinds of a code point. PGEE_WORD: part of a word, but no combining mark. */
enum { PGEE_SPACE = 1, PGEE_PUNCTUATION = 2, PGEE_IDEOGRAPH = 4, PGEE_WORD = 8 };
/* The kinds of a code point, added up; 0 if it has none of them or is beyond U+10FFFF. */
int pgee_character_kind(uint32_t c);

/* ---- Observers ---------------------------------------------------------------------------------------------------- */

typedef struct pgee_observer pgee_observer;

/* An observer collects statistics of rows of K channels: the exact minimum and maximum of each channel, and a sample of at most sample_rows whole rows. A hash of the row's number chooses the sample, so
 * it does not depend on threads or batches. K: 1 to 2^24; sample_rows: 0 to 2^24. `name` is for messages and may be NULL. */
int pgee_observer_new(pgee_observer **out, int64_t K, int64_t sample_rows, const char *name);
/* Releases one reference. A plan holds its observers. */
void pgee_observer_free(pgee_observer *o);
/* Adds the rows of x, F32 [rows][K]. PGEE_ARGUMENT if x has a NaN or an infinity: the message names its row and channel, and the
 * observer does not change. */
int pgee_observer_update(pgee_observer *o, const pgee_tensor *x);
/* K. */
int64_t pgee_observer_channels(const pgee_observer *o);
/* The number of rows seen so far. */
int64_t pgee_observer_count(const pgee_observer *o);
/* Copies of the statistics. min, max: F32 [K], at most 0 and at least 0, as the ranges of quantizers include 0. sample: F32 [rows][K] with min(count, sample_rows) rows, in the order in which
 * they came. Each of the three pointers may be NULL. */
int pgee_observer_read(const pgee_observer *o, pgee_tensor **min, pgee_tensor **max, pgee_tensor **sample);
/* Copies of the smallest and the largest value that each channel had, F32 [K]; all 0 before the first row. Each of the two pointers
 * may be NULL. */
int pgee_observer_extremes(const pgee_observer *o, pgee_tensor **low, pgee_tensor **high);

/* ---- Quantization ------------------------------------------------------------------------------------------------- */

/* SmoothQuant (Xiao et al. 2023, arXiv 2211.10438), equation 4: s[k] = xmax[k]^alpha / wmax[k]^(1-alpha), clamped to [1e-5,
 * 1e5]; 1 if xmax[k] or wmax[k] is 0. s, xmax, wmax: F32 [K], without NaN, infinities and negative values. alpha: 0 to 1. The
 * powers are computed in double without the C library and rounded once, so that every machine gives the same bits. */
int pgee_smooth(pgee_tensor *s, const pgee_tensor *xmax, const pgee_tensor *wmax, double alpha);
/* The largest |w| of each input channel over `count` weights [N_i][K] of type F32, F16 or BF16, written to wmax, F32 [K]. */
int pgee_channel_absmax(pgee_tensor *wmax, const pgee_tensor *const *weights, int count);
/* The scale and the zero point of u8 values for a range lo <= 0 <= hi. symmetric = 0: scale = (hi - lo) / 255, zero = rne(-lo /
 * scale). symmetric = 1: scale = max(-lo, hi) / 127, zero = 128. If the scale or its reciprocal is not a normal float, the
 * scale is 1. */
int pgee_range_scale(double lo, double hi, int symmetric, float *scale, int32_t *zero);
/* The multipliers of a static quantizer: m[k] = (1 / scale) * (1 / s[k]), at most the largest float. m, s: F32 [K]; s may be
 * NULL, which means all 1. scale: positive. */
int pgee_quantize_multiplier(pgee_tensor *m, float scale, const pgee_tensor *s);

/* Per-channel shift (Outlier Suppression+, Wei et al. 2023, arXiv 2304.09145): a static quantizer subtracts z[k] from each channel,
 * and the linears that read the result add the product of their weights and z to their bias.
 * pgee_shift_addend writes what the quantizer adds: b[k] = -z[k] * m[k], at most the largest float. b, z, m: F32 [K]; z and m are
 * finite. */
int pgee_shift_addend(pgee_tensor *b, const pgee_tensor *z, const pgee_tensor *m);
/* y[n] = bias[n] + sum over k of W[n][k] * z[k]: summed in double, k ascending, bias last, rounded to float once. y, bias: F32 [N];
 * bias may be NULL, which means all 0. weights: as for pgee_packed_s8. z: F32 [K]. PGEE_ARGUMENT if a result is NaN or
 * infinite. */
int pgee_shift_bias(pgee_tensor *y, const pgee_tensor *const *weights, int count, const pgee_tensor *z, const pgee_tensor *bias);

/* ---- Tables of embeddings ----------------------------------------------------------------------------------------- */

/* A copy of a table [rows][H] of type F32, F16 or BF16 as F16, each value rounded to the nearest, ties to even.
 * PGEE_ARGUMENT if a value is NaN, infinite, or 65520 or more in magnitude, which F16 has not: the message names its row and
 * column. */
int pgee_table_f16(pgee_tensor **out, const pgee_tensor *table);
/* The same as S8 [rows][H] and scales, F32 [rows]: scale = absmax of the row / 127, or 1 if that or its reciprocal is not a
 * normal float; q = rne(value / scale), which stands for q * scale. PGEE_ARGUMENT if a value is NaN or infinite. */
int pgee_table_s8(pgee_tensor **out, pgee_tensor **scales, const pgee_tensor *table);

/* ---- Packed weights ----------------------------------------------------------------------------------------------- */

enum { PGEE_PER_ROW = 0, PGEE_PER_TENSOR = 1 };

typedef struct pgee_packed pgee_packed;

/* Quantizes and packs for the kernels the weights of `count` linears that read the same input. Each is [N_i][K] of type F32,
 * F16 or BF16, K from 1 to 32768; they are stacked to one weight [N][K]. W' = W[n][k] * s[k] becomes s8 in [-127, 127] with
 * scale = absmax / 127, for each row (per = PGEE_PER_ROW) or for each of the `count` weights (PGEE_PER_TENSOR). s: F32 [K] or
 * NULL, which means all 1. PGEE_ARGUMENT if a value W' is NaN or infinite. */
int pgee_packed_s8(pgee_packed **out, const pgee_tensor *const *weights, int count, const pgee_tensor *s, int per);
/* The same without quantizing: packed as F32. */
int pgee_packed_f32(pgee_packed **out, const pgee_tensor *const *weights, int count);
/* The same, each value rounded to the nearest BF16, ties to even. Values from 2^128 - 2^119 up become infinity. */
int pgee_packed_bf16(pgee_packed **out, const pgee_tensor *const *weights, int count);
/* A packed weight [N][K] over tensors that hold the results of pgee_packed_read; they are held, not copied. `bytes` is a vector
 * aligned to 64 bytes: S8 with scales and sums, or F32 or BF16 with scales and sums NULL. PGEE_ARGUMENT for a sum that is impossible
 * for K values. `bytes` may also be a weight [N][K] that is not packed, of type F32, F16 or BF16, or of type S8 with scales and
 * without sums. This is for a table of embeddings that is used elsewhere too: a linear then packs its panels as F32 during each
 * run. */
int pgee_packed_over(pgee_packed **out, int64_t N, int64_t K, const pgee_tensor *bytes, const pgee_tensor *scales,
                     const pgee_tensor *sums);
/* Releases one reference. A plan holds its weights. */
void pgee_packed_free(pgee_packed *p);
/* In-features. */
int64_t pgee_packed_K(const pgee_packed *p);
/* Out-features. */
int64_t pgee_packed_N(const pgee_packed *p);
/* PGEE_S8, PGEE_BF16 or PGEE_F32. */
int pgee_packed_dtype(const pgee_packed *p);
/* Bytes of the packed weight with its scales, sums and zeros; a table that is not packed is not counted. */
int64_t pgee_packed_bytes(const pgee_packed *p);
/* Views of the parts of a packed weight. scales: F32 [N], of s8 and of an S8 table only. sums: S32 [N], the sums over k, s8 only.
 * bytes: a vector; S8 in the order [N/64][K/64][16][64][4], with N and K rounded up to 64; BF16 in the order [N/64][K/32][16][64][2],
 * with N rounded up to 64 and K to 32; or F32 in the order [N/64][K][64], with K rounded up to 16. Each of the three pointers may be
 * NULL. */
int pgee_packed_read(const pgee_packed *p, pgee_tensor **scales, pgee_tensor **sums, pgee_tensor **bytes);
/* A row-major copy of the weight [N][K], of its type. */
int pgee_packed_unpack(pgee_tensor **out, const pgee_packed *p);
/* The `scale` of a linear whose input has the one scale x_scale > 0: x_scale * scales[n], F32 [N]. For s8 weights. */
int pgee_packed_multiplier(pgee_tensor **out, const pgee_packed *p, float x_scale);

/* ---- Operators ---------------------------------------------------------------------------------------------------- */
/* Each operator has a struct of arguments. pgee_run runs the operator at once; pgee_plan_push appends it to a plan, and then the
 * tensors in the struct may be buffers of the plan. "out": the operator writes this tensor, which the caller has created. */

enum {
  PGEE_EMBED = 0,
  PGEE_LINEAR = 1,
  PGEE_NORM = 2,
  PGEE_QUANTIZE = 3,
  PGEE_ATTENTION = 4,
  PGEE_POOL = 5,
  PGEE_UNIT = 6,
  PGEE_OBSERVE = 7,
  PGEE_GATHER = 8,
  PGEE_OPS = 9
};

/* A packed batch: sequences one after another, without padding. A head that needs only some tokens gets them as the marked
 * tokens. */
typedef struct pgee_batch {
  int64_t T, B;
  const int32_t *ids;    /* [T] */
  const int32_t *types;  /* [T] or NULL: all 0 */
  const int32_t *starts; /* [B+1] first token of each sequence; starts[B] = T */
  int64_t R;
  const int32_t *rows; /* [R] the marked tokens, ascending; NULL if R is 0 */
} pgee_batch;

enum { PGEE_STATIC = 1, PGEE_DYNAMIC_TOKEN = 2, PGEE_DYNAMIC_SEQUENCE = 3 };

/* How an operator quantizes its result x, rows of K floats, to u8. mode 0: not at all. PGEE_STATIC: q = clamp(rne(x * m), lo,
 * hi) + zero, with [lo, hi] = [-zero, 255 - zero], or [-127, 127] if symmetric; if b is given, fma(x, m, b) takes the place of
 * x * m. PGEE_DYNAMIC_TOKEN: the scale and the zero
 * point come from the range of x' = x * m over the row, as in pgee_range_scale, and are written to row_scale and row_zero.
 * PGEE_DYNAMIC_SEQUENCE: from the range over all rows of the sequence. */
typedef struct pgee_quantizer {
  int mode;
  int symmetric;          /* 1: q in [1, 255], zero 128 */
  int32_t zero;           /* static only */
  const pgee_tensor *m;   /* F32 [K]; may be NULL if dynamic: all 1 */
  const pgee_tensor *b;   /* F32 [K] or NULL, static only: what pgee_shift_addend writes */
  pgee_tensor *q;         /* out U8 [rows][K] */
  pgee_tensor *row_scale; /* out F32 [rows], dynamic only */
  pgee_tensor *row_zero;  /* out S32 [rows], dynamic only */
} pgee_quantizer;

/* PGEE_EMBED: y = (word[id] + type[type id]) + position[i + position_offset], where i, from 0, is the token's place in its
 * sequence. skip_padding = 1 (RoBERTa): tokens with id position_offset - 1 are padding. They get position[position_offset - 1]
 * and do not count in the places of other tokens. PGEE_ARGUMENT if an id, a token type or a position has no row. */
typedef struct pgee_embed_args {
  const pgee_tensor *word, *position; /* [vocabulary][H], [positions][H], F32, F16, BF16 or S8; position may be NULL */
  const pgee_tensor *type;            /* [types][H] or NULL */
  int64_t position_offset;
  pgee_tensor *y; /* out F32 [T][H] */
  int skip_padding;
  const pgee_tensor *word_scales, *position_scales, *type_scales; /* F32 [rows], one scale a row of an S8 table; else NULL */
} pgee_embed_args;

/* Activations. PGEE_GELU is exact (erf), PGEE_GELU_TANH the approximation by tanh (Hendrycks and Gimpel 2016, arXiv
 * 1606.08415). SiLU is x sigmoid(x), quick GELU x sigmoid(1.702 x). The rounded forms of GELU are faster and have errors up to
 * 4e-5, which is exact enough for a result that is only used in 8 bits. */
enum { PGEE_IDENTITY = 0, PGEE_GELU = 1, PGEE_GELU_TANH = 2, PGEE_RELU = 3, PGEE_TANH = 4, PGEE_QUICK_GELU = 5, PGEE_SILU = 6 };
enum { PGEE_GELU_ROUNDED = 7, PGEE_GELU_TANH_ROUNDED = 8 };
/* Whose matrix multiplication a linear uses. PGEE_NATIVE: this library's kernel for the ISA in force. PGEE_ONEDNN: oneDNN's, if
 * it has a kernel for the part of the shape that a thread gets, else this library's. PGEE_ONEDNN is refused if
 * pgee_onednn_check refuses the weight, or for F32 weights if there is no oneDNN. */
enum { PGEE_NATIVE = 0, PGEE_ONEDNN = 1 };

/* PGEE_LINEAR: y = activation(x W^T + bias) + residual. F32 and BF16 weights need F32 x; with BF16 weights, x is rounded to BF16,
 * too, and the sums are FP32 (ARITHMETIC.md), by PGEE_NATIVE only. S8 weights need U8 x: with acc = sum over k of
 * (x - zero) w, x W^T + bias is fma(float(acc), scale[n], bias[n]) if x is static, and fma(float(acc) * row_scale[t], scale[n],
 * bias[n]) if x is dynamic; the zero point of a dynamic row is row_zero[t]. */
typedef struct pgee_linear_args {
  const pgee_tensor *x; /* [rows][K] */
  const pgee_packed *w;
  const pgee_tensor *bias;  /* F32 [N] or NULL */
  const pgee_tensor *scale; /* F32 [N]: pgee_packed_multiplier's, or the packed scales if x is dynamic; NULL for F32 and BF16 */
  int32_t zero;             /* of x, static */
  const pgee_tensor *row_scale; /* of x, dynamic: F32 [rows], S32 [rows] */
  const pgee_tensor *row_zero;
  int activation;
  const pgee_tensor *residual; /* F32 [rows][N] or NULL */
  int kernel;                  /* PGEE_NATIVE or PGEE_ONEDNN */
  pgee_tensor *y;              /* out F32 [rows][N] or NULL if quantized */
  pgee_quantizer quantize;     /* static only: requantizes each tile */
} pgee_linear_args;

/* PGEE_NORM, layer normalization (Ba et al. 2016): y = (v - mean) / sqrt(var + eps) * gamma + beta for each row of v = x +
 * residual. */
typedef struct pgee_norm_args {
  const pgee_tensor *x;            /* F32 [rows][H] */
  const pgee_tensor *residual;     /* F32 [rows][H] or NULL */
  const pgee_tensor *gamma, *beta; /* F32 [H] */
  float eps;
  pgee_tensor *y;          /* out F32 [rows][H]; NULL if only the quantized row is wanted. May be x */
  pgee_quantizer quantize; /* static or per token */
} pgee_norm_args;

/* PGEE_QUANTIZE: quantizes x. */
typedef struct pgee_quantize_args {
  const pgee_tensor *x; /* F32 [rows][K] */
  pgee_quantizer quantize;
} pgee_quantize_args;

/* The tokens for which attention is computed: all tokens, the first token of each sequence, or the marked tokens. */
enum { PGEE_QUERIES_ALL = 0, PGEE_QUERIES_FIRST = 1, PGEE_QUERIES_MARKED = 2 };

/* PGEE_ATTENTION: y = softmax(Q K^T * scale + bias) V for each sequence and head. The bits of a result do not depend on the
 * other tokens in `queries`. If qkv is U8, the products are INT8: Q, K and V have zero point 128 and a scale for each head,
 * probabilities have 8 bits, and a sequence has at most 32768 tokens. */
typedef struct pgee_attention_args {
  const pgee_tensor *qkv; /* F32 or U8 [T][3H]: Q, K, V side by side, heads side by side in each */
  int64_t heads;
  float scale;                 /* 1 / sqrt(D) */
  const pgee_tensor *qk_scale; /* U8 qkv: F32 [heads], a head's scale of Q times its scale of K; else NULL */
  const pgee_tensor *v_scale;  /* U8 qkv: F32 [heads]; else NULL */
  int queries;                 /* PGEE_QUERIES_ALL, ... */
  pgee_tensor *y;              /* out F32 [T][H], [B][H] or [R][H], or NULL if quantized */
  pgee_quantizer quantize;     /* static only */
  const pgee_tensor *bias; /* F32 [heads][2M - 1] or NULL: column M - 1 + d is added for a key that is d tokens after the query.
                                  Values times 1.5 must be finite. Sequences have at most M tokens */
} pgee_attention_args;

/* MEAN_SQRT: the sum divided by the square root of the number of tokens. WEIGHTED: the mean in which token i of the sequence,
 * counted from 1, has weight i. */
enum {
  PGEE_POOL_FIRST = 0,
  PGEE_POOL_MEAN = 1,
  PGEE_POOL_MAX = 2,
  PGEE_POOL_MEAN_SQRT = 3,
  PGEE_POOL_LAST = 4,
  PGEE_POOL_WEIGHTED = 5
};

/* PGEE_POOL: makes one row for each sequence from the rows of its tokens. */
typedef struct pgee_pool_args {
  const pgee_tensor *x; /* F32 [T][H] */
  int mode;
  pgee_tensor *y; /* out F32 [B][H] */
} pgee_pool_args;

/* PGEE_UNIT: divides each row by its Euclidean norm, or by 1e-12 if the norm is smaller. */
typedef struct pgee_unit_args {
  const pgee_tensor *x; /* F32 [rows][H] */
  pgee_tensor *y;       /* out F32 [rows][H]; may be x */
} pgee_unit_args;

/* PGEE_OBSERVE: adds the rows of x to an observer, as pgee_observer_update does. */
typedef struct pgee_observe_args {
  const pgee_tensor *x; /* F32 [rows][K] */
  pgee_observer *observer;
} pgee_observe_args;

/* The tokens that PGEE_GATHER copies: the first token of each sequence, or the marked tokens. */
enum { PGEE_GATHER_FIRST = 0, PGEE_GATHER_MARKED = 1 };

/* PGEE_GATHER: copies the rows of some tokens: y[b] = x[starts[b]] (mode PGEE_GATHER_FIRST) or y[r] = x[rows[r]]
 * (PGEE_GATHER_MARKED). */
typedef struct pgee_gather_args {
  const pgee_tensor *x; /* F32, U8 or S32 [T][H], or [T] */
  int mode;
  pgee_tensor *y; /* out, x's type: [B][H] or [R][H], or [B] or [R] */
} pgee_gather_args;

/* Runs one operator now, with all threads. op: PGEE_EMBED, ...; args: the struct of this operator, in which no tensor is a
 * plan's buffer. `batch` is needed by PGEE_EMBED, PGEE_ATTENTION, PGEE_POOL, PGEE_GATHER and PGEE_DYNAMIC_SEQUENCE; else it may
 * be NULL. */
int pgee_run(int op, const void *args, const pgee_batch *batch);

/* Writes the name of the kernel that a linear uses for `rows` rows of x to name[bytes]: "avx512vnni 6x64",
 * "onednn brgemm:avx512_core_vnni". */
int pgee_linear_kernel(const pgee_linear_args *args, int64_t rows, char *name, int64_t bytes);
/* PGEE_OK if oneDNN can be used and gives the same bits as this library's kernels for this weight; else PGEE_UNSUPPORTED, and the
 * message says why. */
int pgee_onednn_check(const pgee_packed *w);
/* The version of oneDNN, "3.2.0"; NULL if no oneDNN 3 can be used, and pgee_message() says why. */
const char *pgee_onednn_version(void);

/* ---- Plans -------------------------------------------------------------------------------------------------------- */
/* A plan is a list of operators and the buffers between them. It is built, then sealed; a sealed plan does not change. Several
 * threads may run a plan at the same time, each in its own workspace. If the plan has an observer, only one thread may run it
 * at a time, because each run changes the observer. */

typedef struct pgee_plan pgee_plan;
typedef struct pgee_workspace pgee_workspace;

/* A new plan without operators. */
int pgee_plan_new(pgee_plan **out);
/* Releases one reference. A workspace holds its plan. */
void pgee_plan_free(pgee_plan *p);
/* A new buffer [rows][width], or [rows] if width is 0. The plan owns it; do not free it. dtype: PGEE_F32, PGEE_U8 or PGEE_S32.
 * rows: PGEE_TOKENS, PGEE_SEQUENCES or PGEE_MARKED. */
int pgee_plan_buffer(pgee_plan *p, pgee_tensor **out, int dtype, int rows, int64_t width);
/* Appends an operator to the plan. Its args are checked and copied, and the plan keeps a reference to its weights and observers.
 * PGEE_ARGUMENT if an earlier operator has not written a buffer that it reads, if an output is not a buffer of this plan, or if the
 * plan is sealed. */
int pgee_plan_push(pgee_plan *p, int op, const void *args);
/* Seals the plan: nothing can be added. `outputs`: `count` buffers that the caller reads after a run. They keep their values
 * until the workspace's next run; other buffers may share memory. */
int pgee_plan_seal(pgee_plan *p, const pgee_tensor *const *outputs, int count);
/* The size in bytes of a workspace for at most T tokens in B sequences of at most S tokens, of which R are marked, with the
 * threads in force. */
int pgee_plan_bytes(const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R, int64_t *bytes);
/* The number of steps: operators that were pushed. */
int64_t pgee_plan_steps(const pgee_plan *p);
/* The operator of step i (from 0), PGEE_EMBED to PGEE_GATHER; -1 if there is no such step. */
int pgee_plan_op(const pgee_plan *p, int64_t i);
/* How the work is divided: the number of multiply-adds of each thread if `threads` threads run this batch, written to
 * multiply_adds[threads]. */
int pgee_plan_work(const pgee_plan *p, const pgee_batch *batch, int threads, int64_t *multiply_adds);

/* Memory to run a plan in, for batches of at most T tokens in B sequences of at most S tokens, of which R are marked. It is one
 * allocation, and it holds the plan. It has scratch memory for the threads in force now; a run never uses more threads. */
int pgee_workspace_new(pgee_workspace **out, const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R);
/* Views of outputs stay valid: they hold the memory. */
void pgee_workspace_free(pgee_workspace *w);
/* The size of the workspace in bytes. */
int64_t pgee_workspace_bytes(const pgee_workspace *w);
/* The number of steps of its plan. */
int64_t pgee_workspace_steps(const pgee_workspace *w);
/* Runs the plan on a batch. PGEE_ARGUMENT, and nothing runs, if the batch is larger than the workspace or if an id, a type, a
 * start or a marked row is out of range. A batch with T = 0 runs nothing. */
int pgee_workspace_run(pgee_workspace *w, const pgee_batch *batch);
/* The same, and writes the time of each step in seconds to seconds[steps]. */
int pgee_workspace_profile(pgee_workspace *w, const pgee_batch *batch, double *seconds);
/* Finds out why a result is not finite: runs the plan with one thread up to the first step whose result has a NaN or an
 * infinity, and writes the number of this step (from 0) to *first, or -1 if all results are finite. The outputs are undefined
 * afterwards. */
int pgee_workspace_nonfinite(pgee_workspace *w, const pgee_batch *batch, int64_t *first);
/* An output of the last run, as a view of its T, B or R rows in the workspace. The next run overwrites it. `buffer`: a buffer
 * of the plan that was sealed as an output. */
int pgee_workspace_output(pgee_tensor **out, const pgee_workspace *w, const pgee_tensor *buffer);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif

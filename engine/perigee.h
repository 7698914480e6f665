/* perigee.h: the C surface of Perigee, an INT8 inference engine for BERT-family encoders on CPUs.
 *
 * This is the only public header, for C11 and for C++11. LuaJIT's FFI reads the same text without the lines that begin with '#' and
 * without what is for C++ alone.
 *
 * Conventions, said once
 *   - Every fallible function returns PGEE_OK or another status and writes its results through pointers. After a failure
 *     pgee_message() says what was wrong and what was expected; the outputs are unchanged.
 *   - X_new and X_open return an owned handle that X_free releases. Handles are reference counted where something else may
 *     hold on to them: a view holds its base, a plan holds its weights. X_free(NULL) does nothing.
 *   - A fallible function refuses a NULL that is not said to be allowed, naming the argument (PGEE_ARGUMENT). What reads one
 *     thing off a handle gives nothing for NULL: 0 or NULL; -1 where 0 would say something.
 *   - Compute functions never allocate results. The library never prints, never exits and never calls back. It aborts in one
 *     case: a handle is freed twice or was overwritten, so that the heap is damaged.
 *   - A handle may be read from several threads at once; it may be changed or freed by one.
 *
 * Shapes: T tokens in the batch, B sequences, S longest sequence, H hidden, I intermediate, A heads, D head size,
 * K in-features, N out-features, R marked tokens. Matrices are row-major; [T][H] is T rows of H. Sizes are in elements unless
 * bytes are named.
 */
#ifndef PERIGEE_H
#define PERIGEE_H
#include <stdint.h>

/* The only place of the version; the first number is that of the SONAME, libperigee.so.0. */
#define PGEE_VERSION "0.1.0"

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Status and version ------------------------------------------------------------------------------------------- */

enum {
  PGEE_OK = 0,
  PGEE_MEMORY = 1,      /* an allocation failed */
  PGEE_ARGUMENT = 2,    /* a value, shape or type that the function does not take */
  PGEE_SYSTEM = 3,      /* the operating system refused: a file that is missing, a thread that could not start */
  PGEE_FORMAT = 4,      /* a file whose content is not what its format says */
  PGEE_UNSUPPORTED = 5, /* well formed, but not something this library or CPU does */
  PGEE_INTERRUPTED = 6  /* pgee_interrupt was called; nothing is left half done */
};

/* What the last failure on this thread was about. Never NULL; valid until this thread's next failure. */
const char *pgee_message(void);
/* PGEE_VERSION of the library that is loaded. */
const char *pgee_version(void);
/* The text of this header, as the FFI takes it. */
const char *pgee_header(void);

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

/* Bytes that this library's handles hold now, and the most they held since the last pgee_peak_reset. */
int64_t pgee_live_bytes(void);
int64_t pgee_peak_bytes(void);
void pgee_peak_reset(void);
/* Bytes that live in memory for which huge pages were asked, and bytes of it that the kernel gave in huge pages (whole ones, so
 * it may be more); 0 where they are switched off (/sys/kernel/mm/transparent_hugepage/enabled: never); -1 where the kernel does not
 * say how many, because /proc/self/smaps cannot be read. */
int pgee_huge_pages(int64_t *asked, int64_t *granted);

/* ---- CPU ---------------------------------------------------------------------------------------------------------- */

/* The instruction sets that kernels exist for, weakest first. PGEE_AMX_MODEL runs the AMX kernels on a portable model of the
 * tile instructions: slow, for tests on CPUs without AMX. */
enum { PGEE_REF = 0, PGEE_AVX2 = 1, PGEE_AVXVNNI = 2, PGEE_AVX512VNNI = 3, PGEE_AMX = 4, PGEE_AMX_MODEL = 5, PGEE_ISAS = 6 };

/* "ref", "avx2", "avxvnni", "avx512vnni", "amx", "amx-model"; NULL for another number. */
const char *pgee_isa_name(int isa);
/* 1 if this CPU and kernel can run it, else 0. Asks Linux for AMX's tile registers if isa is PGEE_AMX: from then on the process
 * needs alternate signal stacks (sigaltstack) of at least getauxval(AT_MINSIGSTKSZ) bytes, some 11 KiB. */
int pgee_isa_runs(int isa);
/* Why it does not run; "" if it does, as far as that is known without asking Linux for anything. */
const char *pgee_isa_reason(int isa);
/* The ISA in force: the best that runs (see pgee_isa_runs), or PERIGEE_ISA's. PGEE_ARGUMENT or PGEE_UNSUPPORTED for a PERIGEE_ISA that is
 * misspelt or that the CPU lacks. */
int pgee_isa(int *isa);
/* Sets the ISA in force from now on, for this process. */
int pgee_isa_set(int isa);
/* The CPU's model name as the system gives it. */
const char *pgee_cpu_name(void);

enum { PGEE_PEAK_INT8 = 0, PGEE_PEAK_F32 = 1, PGEE_PEAK_READ = 2 };
/* What the threads in force do at most, all at once, the best of `tries`: operations a second of the ISA in force's u8 x s8 or
 * FP32 multiplying instruction on registers alone, a multiply-add being two (0 for ref and amx-model); or bytes a second read
 * from memory. For benches. */
int pgee_cpu_peak(int what, int tries, double *per_second);

/* ---- Threads ------------------------------------------------------------------------------------------------------ */

/* Threads that a run uses at most: PERIGEE_THREADS, or one for each physical core in the affinity mask, capped by the cgroup's
 * quota. */
int pgee_threads(int *threads);
/* 1 to 256. */
int pgee_threads_set(int threads);
/* Asks the run in progress (of any thread) to stop between two steps with PGEE_INTERRUPTED. Safe in a signal handler.
 * pgee_interrupt(0) withdraws it. */
void pgee_interrupt(int on);
/* What pgee_interrupt was called with last (a handler: with the number of its signal), 0 if never. */
int pgee_interrupted(void);
/* Seconds of a monotonic clock. */
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
/* How many rows a plan's buffer has: as many as its shape says, one for each token, sequence, marked token of the batch. */
enum { PGEE_FIXED = 0, PGEE_TOKENS = 1, PGEE_SEQUENCES = 2, PGEE_MARKED = 3 };
enum { PGEE_MAX_DIMS = 4 };

typedef struct pgee_tensor pgee_tensor;

/* "F32", "F16", ... as safetensors spells them ("I32" for PGEE_S32, "I64", "I8"); NULL for another number. */
const char *pgee_dtype_name(int dtype);
int pgee_dtype_bytes(int dtype);

/* A zeroed tensor of its own, data aligned to 64 bytes. Rows of PGEE_U8 matrices are padded to a multiple of 64 bytes (what the
 * kernels read), all else is dense. ndim 1 to 4, each dimension >= 0. */
int pgee_tensor_new(pgee_tensor **out, int dtype, int ndim, const int64_t *shape);
/* Rows begin to end (end excluded) of the first dimension of `base`, sharing its memory. */
int pgee_tensor_rows(pgee_tensor **out, const pgee_tensor *base, int64_t begin, int64_t end);
/* Row i of a tensor of two or more dimensions, one dimension less, sharing its memory. */
int pgee_tensor_row(pgee_tensor **out, const pgee_tensor *base, int64_t i);
/* A dense F32 copy: F16 and BF16 are widened exactly, denormals included; integers are converted. */
int pgee_tensor_f32(pgee_tensor **out, const pgee_tensor *base);
/* A copy whose memory asks for transparent huge pages, a few of which hold what thousands of pages do: for weights. */
int pgee_tensor_huge(pgee_tensor **out, const pgee_tensor *base);
void pgee_tensor_free(pgee_tensor *t);

int pgee_tensor_dtype(const pgee_tensor *t);
int pgee_tensor_ndim(const pgee_tensor *t);
/* Dimension i, the first is 0; 0 past the last. */
int64_t pgee_tensor_dim(const pgee_tensor *t, int i);
/* Elements from one row (index of the first dimension) to the next; 1 for vectors. */
int64_t pgee_tensor_stride(const pgee_tensor *t);
/* NULL for a plan's buffer, which has memory only in a workspace. */
void *pgee_tensor_data(const pgee_tensor *t);
/* 0 if it is part of a mapped file: its bytes can only be read. */
int pgee_tensor_writable(const pgee_tensor *t);
/* The index of the first value that is NaN or infinite in an F32, F16 or BF16 tensor, in row-major order; -1 if none. */
int64_t pgee_tensor_nonfinite(const pgee_tensor *t);
/* Copies `count` floats at `from` (any alignment) as doubles. dtype: PGEE_F32, PGEE_F16, PGEE_BF16 or PGEE_F64. Every NaN becomes
 * the same one, 0x7ff8000000000000, because LuaJIT keeps a value's type in the bits of a NaN: if the FFI loaded a NaN of other
 * bits, Lua would see a table, a string or a function at an address that the bits name. `to` may be `from` if dtype is F64. */
int pgee_numbers(double *to, const void *from, int dtype, int64_t count);
/* 1 if type, shape and every bit are equal, else 0. */
int pgee_tensor_equal(const pgee_tensor *a, const pgee_tensor *b);

/* Signal-to-quantization-noise ratio in dB of `test` against `reference`, both F32 of one shape: 10 log10(sum r^2 / sum (r-t)^2),
 * sums in double. Infinite if equal; NaN if `reference` is all zero and `test` is not. */
int pgee_sqnr(double *db, const pgee_tensor *reference, const pgee_tensor *test);

/* ---- Safetensors -------------------------------------------------------------------------------------------------- */

typedef struct pgee_safetensors pgee_safetensors;

/* Maps a file read-only and checks its whole header. PGEE_SYSTEM, or PGEE_FORMAT with what is malformed and where. The file must
 * not change while it is mapped: where it was cut short, reading ends the process (SIGBUS). Replace it by renaming another. */
int pgee_safetensors_open(pgee_safetensors **out, const char *path);
/* The same over a copy of its bytes in memory: what others do to the file afterwards does not matter. */
int pgee_safetensors_read(pgee_safetensors **out, const char *path);
/* Views keep the bytes alive. */
void pgee_safetensors_free(pgee_safetensors *f);
/* Of the file. */
int64_t pgee_safetensors_bytes(const pgee_safetensors *f);
int64_t pgee_safetensors_count(const pgee_safetensors *f);
/* The i-th name in the header's order; NULL past the end. */
const char *pgee_safetensors_name(const pgee_safetensors *f, int64_t i);
/* A view of the mapped bytes, or a copy if they lie at an address that is no multiple of the type's size. PGEE_ARGUMENT if there
 * is no such tensor. */
int pgee_safetensors_tensor(pgee_tensor **out, const pgee_safetensors *f, const char *name);
/* The value of a key of __metadata__; NULL if there is none. */
const char *pgee_safetensors_metadata(const pgee_safetensors *f, const char *key);

/* Writes `count` tensors, each with its name, and `pairs` keys and values (in turn) of __metadata__. Equal arguments give equal
 * bytes: keys and names in the order of their bytes, no spaces but after the header, so that data begins at a multiple of 64;
 * each tensor at the next one, where need be after a U8 tensor named NAME.filler. Last comes `checksums`, I32: the CRC-32 of all
 * before the data, then of each tensor in the order of their offsets (a filler is one), zeros, then that of all these, so that
 * they are a multiple of 16. Rows are written dense.
 * The file is complete or not there: it is written beside `path`, flushed to the disk, and then takes the place of what was
 * there, whose owner and permissions it gets, and which this process must be allowed to write to. A link at `path` stays and
 * leads to it. A process that is killed may leave a file .NAME.saving-*, which the next one to write NAME removes. */
int pgee_safetensors_write(const char *path, const char *const *names, const pgee_tensor *const *tensors, int64_t count,
                           const char *const *metadata, int64_t pairs);
/* Checks a file that pgee_safetensors_write made: that its header and each tensor of at most `bytes` bytes (-1: any) have their
 * checksums, and that tensors begin at multiples of 64. PGEE_FORMAT names what differs. */
int pgee_safetensors_verify(const pgee_safetensors *f, int64_t bytes);
/* The checksum that stands in the file, of a tensor, or of the header if name is NULL. */
int pgee_safetensors_checksum(const pgee_safetensors *f, const char *name, uint32_t *stored);

/* ---- Tokenizer ---------------------------------------------------------------------------------------------------- */

/* A text becomes ids in these steps, as in the tokenizers package: added tokens are cut out, normalizers change the text,
 * pre-tokenizers cut it into words, the model cuts a word into pieces, a template puts special tokens around. */
typedef struct pgee_tokenizer pgee_tokenizer;

enum { PGEE_WORDPIECE = 1, PGEE_UNIGRAM = 2, PGEE_BPE = 3 };

/* Kinds of steps, by the names that tokenizer.json has for them. Behind each: the fields of pgee_tokenizer_step that it reads. */
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

/* Text that is one token wherever it stands, such as [SEP]: looked for in the text as it is (`normalized` = 0), or, normalized
 * itself, in the normalized text. single_word: not inside a word. lstrip, rstrip: takes the white space to its left, right.
 * special: decoding leaves it out. */
typedef struct pgee_added_token {
  const char *text;
  int64_t bytes;
  int32_t id; /* -1: that of the piece with that text, else the next one that is free from `count` on */
  int32_t normalized, single_word, lstrip, rstrip, special;
  int32_t shown_normalized; /* it is shown by its normalized text, as those with `normalized` are, but looked for by `text` */
} pgee_added_token;

/* A special token, or all tokens of a text: id PGEE_TEXT_A or PGEE_TEXT_B. */
typedef struct pgee_template_piece {
  int32_t id, type;
} pgee_template_piece;
enum { PGEE_TEXT_A = -1, PGEE_TEXT_B = -2 };

/* What a tokenizer is made of. Zeros are good defaults; what a model does not read may be anything. All is copied. */
typedef struct pgee_tokenizer_definition {
  int32_t model; /* PGEE_WORDPIECE, PGEE_UNIGRAM, PGEE_BPE */
  /* Piece i is pieces[ends[i - 1]] to pieces[ends[i] - 1], UTF-8, with id ids[i] >= 0, or i where ids is NULL. Of equal pieces
   * the last counts. */
  const char *pieces;
  const int64_t *ends;
  const int32_t *ids;
  int64_t count;
  int32_t unk;                 /* the id of what the model does not know, -1: none. WordPiece must have one */
  int32_t max_word_chars;      /* WordPiece: a longer word is unknown */
  const char *prefix, *suffix; /* WordPiece, BPE: of pieces inside a word, "##"; BPE: of those that end one. NULL: none */
  const double *scores;        /* Unigram [count] */
  const int32_t *merges;       /* BPE [merge_count][3], best first: left, right, what they become */
  int64_t merge_count;
  int32_t byte_fallback;           /* Unigram, BPE */
  int32_t fuse_unk, ignore_merges; /* BPE */
  const char *charsmap;            /* of PGEE_STEP_PRECOMPILED */
  int64_t charsmap_bytes;
  const pgee_tokenizer_step *normalizers, *pre_tokenizers, *decoders; /* done one after another */
  int64_t normalizer_count, pre_tokenizer_count, decoder_count;
  int32_t trim_offsets, add_prefix_space;   /* of the byte-level post-processors */
  int32_t left;                             /* texts are cut off at their beginning, unless a call says otherwise */
  const pgee_template_piece *single, *pair; /* NULL: the texts alone, the second with type 1 */
  int64_t single_count, pair_count;
  const pgee_added_token *added;
  int64_t added_count;
  const char *const *specials; /* [5] the texts of unk, cls, sep, pad, mask, for those who ask; NULL: none */
  const int32_t *special_ids;  /* [5] or NULL: ids that go before these texts, -1: the text's */
} pgee_tokenizer_definition;

/* PGEE_ARGUMENT: a value out of range, text that is not UTF-8; PGEE_UNSUPPORTED: a regular expression or a size that is not
 * supported. */
int pgee_tokenizer_new(pgee_tokenizer **out, const pgee_tokenizer_definition *definition);
void pgee_tokenizer_free(pgee_tokenizer *t);

/* What a tokenizer runs from: one block of bytes without pointers, little-endian, the same whenever the definition is. A view,
 * U8 [bytes]. */
int pgee_tokenizer_image(pgee_tensor **out, const pgee_tokenizer *t);
/* A tokenizer that runs from such a block and holds the tensor, U8 [bytes] with its data at a multiple of 8. Nothing is copied or
 * parsed. PGEE_FORMAT for one that is no image; whatever its bytes are, nothing outside of it is read. */
int pgee_tokenizer_from_image(pgee_tokenizer **out, const pgee_tensor *image);

/* The model, PGEE_WORDPIECE to PGEE_BPE; how many pieces and added tokens it has; the largest id plus 1; how many special tokens
 * are put around one text, or around a pair. */
int64_t pgee_tokenizer_model(const pgee_tokenizer *t);
int64_t pgee_tokenizer_size(const pgee_tokenizer *t);
int64_t pgee_tokenizer_ids(const pgee_tokenizer *t);
int64_t pgee_tokenizer_special_count(const pgee_tokenizer *t, int pair);
/* out: [5], the ids of unk, cls, sep, pad, mask, -1 for those that it has not. */
int pgee_tokenizer_specials(const pgee_tokenizer *t, int32_t *out);
/* Whether texts are cut off at their beginning, unless a call says otherwise. */
int pgee_tokenizer_left(const pgee_tokenizer *t);
/* What pieces inside a word begin with, "##"; "" where nothing tells them. */
const char *pgee_tokenizer_prefix(const pgee_tokenizer *t);
/* The piece or added token with that id: `bytes` of UTF-8, not ended by zero; NULL and 0 if there is none. */
const char *pgee_tokenizer_piece(const pgee_tokenizer *t, int64_t id, int64_t *bytes);
/* The id of an added token or piece; -1 if there is none. */
int32_t pgee_tokenizer_id(const pgee_tokenizer *t, const char *text, int64_t bytes);

typedef struct pgee_encoding {
  int32_t *ids;       /* [capacity] */
  int32_t *types;     /* [capacity] what the template says; BERT's: 0 first text, 1 second text and its [SEP] */
  int32_t *offsets;   /* [capacity][2] or NULL: begin and end in the token's text; 0, 0 for those that are put around it */
  int64_t capacity;   /* what the arrays hold */
  int64_t length;     /* out: tokens written */
  int64_t dropped;    /* out: tokens that max_tokens cut off */
  int32_t *sequences; /* [capacity] or NULL: 1 first text, 2 second text, 0 put around them */
  int32_t *words;     /* [capacity] or NULL: the index of the word in its text, -1 for those that are put around it */
} pgee_encoding;

/* One text, or one that is cut into words already: word i is bytes[word_ends[i - 1]] to bytes[word_ends[i] - 1]. Each is then
 * encoded alone, with offsets from its own beginning. */
typedef struct pgee_text {
  const char *bytes; /* need no terminator; at most 2^31 - 4; a byte that is part of no UTF-8 character counts as U+FFFD */
  int64_t count;
  const int64_t *word_ends; /* [words] or NULL */
  int64_t words;
} pgee_text;

enum { PGEE_TRUNCATE_LONGEST = 0, PGEE_TRUNCATE_FIRST = 1, PGEE_TRUNCATE_SECOND = 2 };
enum { PGEE_SIDE_DEFAULT = 0, PGEE_SIDE_RIGHT = 1, PGEE_SIDE_LEFT = 2 };

typedef struct pgee_encode_options {
  int64_t max_tokens; /* counts the special tokens */
  int32_t truncate;   /* PGEE_TRUNCATE_LONGEST: from the longer text until both are equal, then from both */
  int32_t bare;       /* no special tokens */
  int32_t characters; /* offsets are in characters, not bytes */
  int32_t side;       /* where texts are cut off: PGEE_SIDE_RIGHT their ends; PGEE_SIDE_DEFAULT as the tokenizer says */
} pgee_encode_options;

/* Encodes a, or a and b where b is not NULL, as the tokenizers package does. PGEE_ARGUMENT if max_tokens does not hold the
 * special tokens, if the text that is to be cut would have to be cut to nothing, or if the arrays do not hold the tokens: then
 * e->length is how many there are. max_tokens are enough; so, for WordPiece after BertNormalizer alone, are the bytes and the
 * special tokens. After a failure the arrays hold anything. */
int pgee_tokenizer_encode_texts(const pgee_tokenizer *t, pgee_encoding *e, const pgee_text *a, const pgee_text *b,
                                const pgee_encode_options *options);
/* The same for plain texts with the options' defaults. */
int pgee_tokenizer_encode(const pgee_tokenizer *t, pgee_encoding *e, const char *a, int64_t a_bytes, const char *b,
                          int64_t b_bytes, int64_t max_tokens);
/* The text of ids by the decoders, special tokens left out unless `special`: writes at most `capacity` bytes of UTF-8, and how
 * many there are to *bytes. PGEE_ARGUMENT for an id that there is not. */
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

/* The list of pieces and scores that is model.vocab in the text of a tokenizer.json; NULL if there is none. Only this is read,
 * the scores as the tokenizers package reads them, which is not always the nearest double. path is for messages. */
int pgee_vocabulary_json(pgee_vocabulary **out, const char *path, const char *text, int64_t bytes);
void pgee_vocabulary_free(pgee_vocabulary *v);

/* A code point by the tokenizer's tables: its lower case where that is one code point, else itself; and what it is, a sum of
 * these. PGEE_WORD: part of a word, marks aside. Past U+10FFFF: itself, 0. */
enum { PGEE_SPACE = 1, PGEE_PUNCTUATION = 2, PGEE_IDEOGRAPH = 4, PGEE_WORD = 8 };
uint32_t pgee_character_lower(uint32_t c);
int pgee_character_kind(uint32_t c);

/* ---- Observers ---------------------------------------------------------------------------------------------------- */

typedef struct pgee_observer pgee_observer;

/* Watches rows of K features as they stream by: the exact minimum and maximum of each channel (which start at 0: ranges
 * include it), and a bounded sample of whole rows, chosen by a hash of the row's number, so that it depends on nothing else.
 * name: what is watched, for messages; may be NULL. */
int pgee_observer_new(pgee_observer **out, int64_t K, int64_t sample_rows, const char *name);
void pgee_observer_free(pgee_observer *o);
/* x: F32 [rows][K]. NaN and infinity: PGEE_ARGUMENT, naming row and channel; nothing is taken in. */
int pgee_observer_update(pgee_observer *o, const pgee_tensor *x);
/* K, and the rows seen. */
int64_t pgee_observer_channels(const pgee_observer *o);
int64_t pgee_observer_count(const pgee_observer *o);
/* Copies: F32 [K], F32 [K], F32 [min(count, sample_rows)][K] in the order of the stream. Any may be NULL. */
int pgee_observer_read(const pgee_observer *o, pgee_tensor **min, pgee_tensor **max, pgee_tensor **sample);

/* ---- Quantization ------------------------------------------------------------------------------------------------- */

/* SmoothQuant (Xiao et al. 2023), eq. 4: s[k] = xmax[k]^alpha / wmax[k]^(1-alpha), clamped to [1e-5, 1e5], 1 where xmax or wmax
 * is 0. All F32 [K]; alpha in [0, 1]. Powers in double, our own, rounded once: equal on every machine. */
int pgee_smooth(pgee_tensor *s, const pgee_tensor *xmax, const pgee_tensor *wmax, double alpha);
/* Largest |w| of each input channel over the weights given, [N_i][K] of any float type, into F32 [K]. */
int pgee_channel_absmax(pgee_tensor *wmax, const pgee_tensor *const *weights, int count);
/* Scale and zero point for a static range lo <= 0 <= hi. Asymmetric: scale = (hi - lo) / 255, zero = rne(-lo / scale). Symmetric:
 * scale = max(-lo, hi) / 127, zero = 128. A scale that is not a normal float, or whose reciprocal is not, becomes 1. */
int pgee_range_scale(double lo, double hi, int symmetric, float *scale, int32_t *zero);
/* m[k] = (1 / scale) * (1 / s[k]), F32 [K]: what a static quantizer multiplies by. s may be NULL: all 1. */
int pgee_quantize_multiplier(pgee_tensor *m, float scale, const pgee_tensor *s);

/* ---- Packed weights ----------------------------------------------------------------------------------------------- */

enum { PGEE_PER_ROW = 0, PGEE_PER_TENSOR = 1 };

typedef struct pgee_packed pgee_packed;

/* Weights of `count` linears that read one input, [N_i][K] each of any float type, stacked to [N][K] and packed for the
 * kernels. INT8: W[n][k] * s[k], then s8 in [-127, 127] with scale absmax / 127 per row or per tensor (over each of the
 * `count`). s may be NULL. */
int pgee_packed_s8(pgee_packed **out, const pgee_tensor *const *weights, int count, const pgee_tensor *s, int per);
int pgee_packed_f32(pgee_packed **out, const pgee_tensor *const *weights, int count);
/* Over what pgee_packed_read gave of a weight [N][K]: it is held, not copied. `bytes` aligned to 64 and I8, then scales and sums
 * are needed, or F32, then they are NULL. Sums that no weights have are refused. Or `bytes` is the weight itself, [N][K] of any
 * float type, whose rows stay where they lie, for a table that is used elsewhere too: linears pack its panels as they go. */
int pgee_packed_over(pgee_packed **out, int64_t N, int64_t K, const pgee_tensor *bytes, const pgee_tensor *scales,
                     const pgee_tensor *sums);
void pgee_packed_free(pgee_packed *p);
int64_t pgee_packed_K(const pgee_packed *p);
int64_t pgee_packed_N(const pgee_packed *p);
/* PGEE_S8 or PGEE_F32 */
int pgee_packed_dtype(const pgee_packed *p);
int64_t pgee_packed_bytes(const pgee_packed *p);
/* Views: the scales F32 [N] (s8 only), sums over k S32 [N] (s8 only), and the packed bytes, s8 [N/64][K/64][16][64][4] or
 * F32 [N/64][K][64] with K padded to 16, as a vector. Any may be NULL. */
int pgee_packed_read(const pgee_packed *p, pgee_tensor **scales, pgee_tensor **sums, pgee_tensor **bytes);
/* A row-major copy: S8 [N][K], or F32 [N][K]. */
int pgee_packed_unpack(pgee_tensor **out, const pgee_packed *p);
/* m[n] = x_scale * scales[n], F32 [N]: the multiplier of a linear whose input has one scale. */
int pgee_packed_multiplier(pgee_tensor **out, const pgee_packed *p, float x_scale);

/* ---- Operators ---------------------------------------------------------------------------------------------------- */
/* One operator is one args struct. Run at once by pgee_run, or pushed on a plan by pgee_plan_push. Fields that are tensors
 * may be a plan's buffers in the latter case. */

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

/* A packed batch: sequences one after another, no padding. Tokens may be marked: those that a head wants a row of. */
typedef struct pgee_batch {
  int64_t T, B;
  const int32_t *ids;    /* [T] */
  const int32_t *types;  /* [T] or NULL: all 0 */
  const int32_t *starts; /* [B+1] first token of each sequence; starts[B] = T */
  int64_t R;
  const int32_t *rows; /* [R] the marked tokens, ascending; NULL if R is 0 */
} pgee_batch;

enum { PGEE_STATIC = 1, PGEE_DYNAMIC_TOKEN = 2, PGEE_DYNAMIC_SEQUENCE = 3 };

/* How a row of K floats becomes u8. mode 0: it does not. Static: q = clamp(rne(x * m), lo, hi) + zero. Dynamic: x' = x *
 * m, the scale from the range of x' over the row (or the sequence), written to row_scale and row_zero. */
typedef struct pgee_quantizer {
  int mode;
  int symmetric;          /* 1: q in [1, 255], zero 128 */
  int32_t zero;           /* static only */
  const pgee_tensor *m;   /* F32 [K]; may be NULL if dynamic: all 1 */
  pgee_tensor *q;         /* out U8 [rows][K] */
  pgee_tensor *row_scale; /* out F32 [rows], dynamic only */
  pgee_tensor *row_zero;  /* out S32 [rows], dynamic only */
} pgee_quantizer;

/* y = (word[id] + type[type id]) + position[i + position_offset], i the place in the sequence. With skip_padding, tokens of the
 * id position_offset - 1 have position[position_offset - 1] and are not counted in the place of others. */
typedef struct pgee_embed_args {
  const pgee_tensor *word, *position; /* [vocabulary][H], [positions][H], F32, F16 or BF16; position may be NULL */
  const pgee_tensor *type;            /* [types][H] or NULL */
  int64_t position_offset;
  pgee_tensor *y; /* out F32 [T][H] */
  int skip_padding;
} pgee_embed_args;

/* GELU by erf and by tanh (Hendrycks and Gimpel 2016); SiLU, x sigmoid(x), and quick GELU, x sigmoid(1.702 x). The rounded ones are
 * off by up to 4e-5, for results that will be quantized; where GELU's result is only stored in 8 bits they stand in for it. */
enum { PGEE_IDENTITY = 0, PGEE_GELU = 1, PGEE_GELU_TANH = 2, PGEE_RELU = 3, PGEE_TANH = 4, PGEE_QUICK_GELU = 5, PGEE_SILU = 6 };
enum { PGEE_GELU_ROUNDED = 7, PGEE_GELU_TANH_ROUNDED = 8 };
/* Who multiplies. PGEE_NATIVE: our kernel for the ISA in force. PGEE_ONEDNN: oneDNN, where it has a kernel for the part of the
 * shape that a thread takes, else ours; refused if pgee_onednn_check refuses it, or for FP32 if there is no oneDNN. */
enum { PGEE_NATIVE = 0, PGEE_ONEDNN = 1 };

/* y = activation(x W^T + bias) + residual. INT8 weights take U8 x: y = fma(float(acc), scale[n], bias[n]) with
 * acc = sum (x - zero) w, or fma(float(acc) * row_scale[t], scale[n], bias[n]). F32 weights take F32 x. */
typedef struct pgee_linear_args {
  const pgee_tensor *x; /* [rows][K] */
  const pgee_packed *w;
  const pgee_tensor *bias;      /* F32 [N] or NULL */
  const pgee_tensor *scale;     /* F32 [N]: pgee_packed_multiplier's, or the packed scales if x is dynamic; NULL for F32 */
  int32_t zero;                 /* of x, static */
  const pgee_tensor *row_scale; /* of x, dynamic: F32 [rows], S32 [rows] */
  const pgee_tensor *row_zero;
  int activation;
  const pgee_tensor *residual; /* F32 [rows][N] or NULL */
  int kernel;                  /* PGEE_NATIVE or PGEE_ONEDNN */
  pgee_tensor *y;              /* out F32 [rows][N] or NULL if quantized */
  pgee_quantizer quantize;     /* static only: requantizes each tile */
} pgee_linear_args;

/* y = (v - mean) / sqrt(var + eps) * gamma + beta over each row, v = x + residual. */
typedef struct pgee_norm_args {
  const pgee_tensor *x;            /* F32 [rows][H] */
  const pgee_tensor *residual;     /* F32 [rows][H] or NULL */
  const pgee_tensor *gamma, *beta; /* F32 [H] */
  float eps;
  pgee_tensor *y;          /* out F32 [rows][H]; NULL if only the quantized row is wanted. May be x */
  pgee_quantizer quantize; /* static or per token */
} pgee_norm_args;

typedef struct pgee_quantize_args {
  const pgee_tensor *x; /* F32 [rows][K] */
  pgee_quantizer quantize;
} pgee_quantize_args;

/* Whose results are wanted: all tokens', the first one's of each sequence, the marked ones'. */
enum { PGEE_QUERIES_ALL = 0, PGEE_QUERIES_FIRST = 1, PGEE_QUERIES_MARKED = 2 };

/* softmax(Q K^T * scale + bias) V for each sequence and head; a query has the same bits whichever others are wanted. In INT8 if
 * qkv is U8: Q, K and V have zero point 128 and a scale for each head, probabilities 8 bits; sequences of at most 32768
 * tokens. */
typedef struct pgee_attention_args {
  const pgee_tensor *qkv; /* F32 or U8 [T][3H]: Q, K, V side by side, heads side by side in each */
  int64_t heads;
  float scale;                 /* 1 / sqrt(D) */
  const pgee_tensor *qk_scale; /* U8 qkv: F32 [heads], a head's scale of Q times its scale of K; else NULL */
  const pgee_tensor *v_scale;  /* U8 qkv: F32 [heads]; else NULL */
  int queries;                 /* PGEE_QUERIES_ALL, ... */
  pgee_tensor *y;              /* out F32 [T][H], [B][H] or [R][H], or NULL if quantized */
  pgee_quantizer quantize;     /* static only */
  const pgee_tensor *bias;     /* F32 [heads][2M - 1] or NULL: column M - 1 + d is added where a key is d tokens after the query;
                                  finite, also times 1.5. Sequences of at most M tokens */
} pgee_attention_args;

/* WEIGHTED: the mean in which the token at position i of its sequence, from 1, counts i times. */
enum {
  PGEE_POOL_FIRST = 0,
  PGEE_POOL_MEAN = 1,
  PGEE_POOL_MAX = 2,
  PGEE_POOL_MEAN_SQRT = 3,
  PGEE_POOL_LAST = 4,
  PGEE_POOL_WEIGHTED = 5
};

/* One row for each sequence. */
typedef struct pgee_pool_args {
  const pgee_tensor *x; /* F32 [T][H] */
  int mode;
  pgee_tensor *y; /* out F32 [B][H] */
} pgee_pool_args;

/* Each row divided by its Euclidean norm, at least 1e-12. */
typedef struct pgee_unit_args {
  const pgee_tensor *x; /* F32 [rows][H] */
  pgee_tensor *y;       /* out F32 [rows][H]; may be x */
} pgee_unit_args;

typedef struct pgee_observe_args {
  const pgee_tensor *x; /* F32 [rows][K] */
  pgee_observer *observer;
} pgee_observe_args;

/* Which tokens: the first of each sequence, or the marked ones. */
enum { PGEE_GATHER_FIRST = 0, PGEE_GATHER_MARKED = 1 };

/* Copies the rows of these tokens, in the batch's order: y[b] = x[starts[b]], or y[r] = x[rows[r]]. */
typedef struct pgee_gather_args {
  const pgee_tensor *x; /* F32, U8 or S32 [T][H], or [T] */
  int mode;
  pgee_tensor *y; /* out, x's type: [B][H] or [R][H], or [B] or [R] */
} pgee_gather_args;

/* Runs one operator now on all threads. `batch` is needed by PGEE_EMBED, PGEE_ATTENTION, PGEE_POOL, PGEE_GATHER and
 * per-sequence quantization, else NULL. */
int pgee_run(int op, const void *args, const pgee_batch *batch);

/* What `kernel` asks for, in words: "avx512vnni 6x64", "onednn brgemm:avx512_core_vnni". For explain(). rows: how many x has. */
int pgee_linear_kernel(const pgee_linear_args *args, int64_t rows, char *name, int64_t bytes);
/* PGEE_OK if oneDNN is there and gives the bits of our own kernels for this weight; else PGEE_UNSUPPORTED, saying why. */
int pgee_onednn_check(const pgee_packed *w);
/* "3.2.0", or NULL if no oneDNN 3 can be used: then pgee_message() says why. */
const char *pgee_onednn_version(void);

/* ---- Plans -------------------------------------------------------------------------------------------------------- */
/* A plan is a list of operators and the buffers between them. It is built, sealed, and then immutable: any number of
 * threads may run it, each in its own workspace; but an observer in it is changed by a run, so by one thread at a time. */

typedef struct pgee_plan pgee_plan;
typedef struct pgee_workspace pgee_workspace;

int pgee_plan_new(pgee_plan **out);
void pgee_plan_free(pgee_plan *p);
/* A buffer of the plan, owned by it (never free it): `rows` PGEE_TOKENS, PGEE_SEQUENCES or PGEE_MARKED, width 0 for a vector of
 * one value a row; F32, U8 or S32. */
int pgee_plan_buffer(pgee_plan *p, pgee_tensor **out, int dtype, int rows, int64_t width);
/* Appends an operator; its args are checked and copied, its weights held. */
int pgee_plan_push(pgee_plan *p, int op, const void *args);
/* Ends building. `outputs` keep their memory until the workspace's next run; other buffers share memory once unused. */
int pgee_plan_seal(pgee_plan *p, const pgee_tensor *const *outputs, int count);
/* Bytes of a workspace for up to T tokens in B sequences of at most S tokens, R of them marked, with the threads in force. */
int pgee_plan_bytes(const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R, int64_t *bytes);
int64_t pgee_plan_steps(const pgee_plan *p);
/* The operator of step i. */
int pgee_plan_op(const pgee_plan *p, int64_t i);
/* Multiply-adds that each thread would do for this batch with `threads` threads, [threads]. */
int pgee_plan_work(const pgee_plan *p, const pgee_batch *batch, int threads, int64_t *multiply_adds);

/* Holds the plan. One allocation, for as many threads as are in force now: a run uses no more of them. */
int pgee_workspace_new(pgee_workspace **out, const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R);
void pgee_workspace_free(pgee_workspace *w);
int64_t pgee_workspace_bytes(const pgee_workspace *w);
/* The plan's. */
int64_t pgee_workspace_steps(const pgee_workspace *w);
/* Runs the plan on a batch within the workspace's capacity. Ids, types, starts and marked rows are checked first. T = 0 is a run
 * that does nothing. */
int pgee_workspace_run(pgee_workspace *w, const pgee_batch *batch);
/* The same, and the seconds that each step took, [steps]. */
int pgee_workspace_profile(pgee_workspace *w, const pgee_batch *batch, double *seconds);
/* Runs the plan by one thread up to the first step whose result has a NaN or an infinity: its number from 0, -1 if all are finite.
 * Outputs then hold anything. For explaining a result that is not finite. */
int pgee_workspace_nonfinite(pgee_workspace *w, const pgee_batch *batch, int64_t *first);
/* An output of the last run: a view of T, B or R rows in the workspace, valid until its next run. `buffer` is the plan's. */
int pgee_workspace_output(pgee_tensor **out, const pgee_workspace *w, const pgee_tensor *buffer);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif

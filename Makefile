# Perigee. There is no configure step; `make help` lists what there is to make.
# The version is in the header. Its first number is that of the SONAME.
VERSION := $(shell sed -n 's/^\#define PGEE_VERSION "\(.*\)"/\1/p' engine/perigee.h)
BUILD   := build
OPT     := -O2
PREFIX  := /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif

# A file's stem says which instructions it may use: kernels/isa.h has the flags of each instruction set. This makes variables such as
# ISA_avx2 of them. A file whose stem is no instruction set gets plain x86-64.
FLAGS_OF_ISAS := $(shell sed -n 's/^ *ISA([A-Z0-9_]*, *\([a-z0-9_]*\),.*"\(-m.*\)").*/ISA_\1:=\2/p' kernels/isa.h | tr ' ' '|')
X86_ISAS := $(foreach isa,$(FLAGS_OF_ISAS),$(patsubst ISA_%,%,$(firstword $(subst :=, ,$(isa)))))
$(foreach isa,$(FLAGS_OF_ISAS),$(eval $(subst |, ,$(isa))))

# CPUs other than x86-64 run the portable reference: the files of these instruction sets are left out, and so is oneDNN.
X86 := $(findstring x86_64,$(shell $(CC) -dumpmachine))

# oneDNN 3: the copy that .ci/deps unpacked, else that of the system, by its SONAME (Debian's is libdnnl.so.3.6). Perigee does not
# link it, but opens it on first use.
ONEDNN := $(and $(X86),$(firstword $(wildcard build/deps/onednn/include/oneapi/dnnl/dnnl.h /usr/include/oneapi/dnnl/dnnl.h)))
ifneq ($(filter build/%,$(ONEDNN)),)
DEFS_onednn := -isystem build/deps/onednn/include -DPGEE_HAVE_ONEDNN -DPGEE_ONEDNN_PATH='"$(abspath build/deps/onednn/lib/libdnnl.so.3)"'
else ifneq ($(ONEDNN),)
SONAME_onednn := $(shell readelf -d "$$($(CC) -print-file-name=libdnnl.so)" 2> /dev/null | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
DEFS_onednn := -DPGEE_HAVE_ONEDNN -DPGEE_ONEDNN_PATH='"$(or $(SONAME_onednn),libdnnl.so.3)"'
endif
DEFS_version := -I$(BUILD)/gen

WARN  := -Wall -Wextra -Wshadow -Wvla
FLAGS := -std=c11 -D_GNU_SOURCE -I. $(OPT) -g -ffp-contract=off -fPIC -fvisibility=hidden -pthread $(WARN) $(CFLAGS)
# The library is never unmapped (-z nodelete), because its idle threads still hold its code when a Lua state closes. A name without
# a definition is an error of the link (-z defs), except under sanitizers, whose functions are in the program.
SHARED := -shared -Wl,-z,nodelete $(if $(findstring -fsanitize,$(CFLAGS)),,-Wl,-z,defs)
LIBS  := -ldl -lpthread -lm

SOURCES := $(filter-out $(if $(X86),,$(foreach isa,$(X86_ISAS),%/$(isa).c)),\
  $(wildcard engine/*/*.c kernels/*.c kernels/*/*.c))
SUPPORT := $(filter-out spec/support/hard_% spec/fuzz/main.c $(if $(X86),,spec/bench/kernels.c),$(wildcard spec/*/*.c spec/*/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/obj/%.o)
SPECOBJ := $(SUPPORT:%.c=$(BUILD)/obj/%.o)
HARDOBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard spec/support/hard_*.c))
LIB     := $(BUILD)/libperigee.so
SONAME  := libperigee.so.$(firstword $(subst ., ,$(VERSION)))
SPECLIB := $(BUILD)/libperigee_spec.so

LUAJIT := luajit
SPEC   := spec
# Processes that run specs at a time.
JOBS   := $(shell nproc | awk '{ print $$1 < 8 ? $$1 : 8 }')
# Uses every processor, unless -j was given.
MAKE_ALL = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
QUIET  := $(if $(V),,@)

.PHONY: lib speclib deps demo models test slow specs lint format exact hard hard-gc hard-clang hard-run tsan tsan-run debian13 install uninstall clean help FORCE
.PHONY: load serve-clients portable differential differential-files model-amx bench-open bench-tokenizers bench-kernels bench-peers bench-mixed bench-cliffs bench-heads quality figures bench-pipe kills fuzz embed embed-host spark bench-amx
.DELETE_ON_ERROR:

## make                  the library, build/libperigee.so
lib: $(LIB)

## make demo             installs what is missing, builds, fetches a checkpoint, quantizes it, judges and times it
demo:
	@sh .ci/deps model
	@$(MAKE_ALL) lib
	@sh .ci/fetch model build/demo/all-MiniLM-L6-v2
	PERIGEE_LIB="$(abspath $(LIB))" $(LUAJIT) recipes/bert_static.lua

## make models           fetches larger checkpoints that specs and recipes use where they are: all-mpnet-base-v2, multilingual-e5-small
models:
	@sh .ci/deps model
	sh .ci/fetch mpnet build/demo/all-mpnet-base-v2
	sh .ci/fetch e5 build/demo/multilingual-e5-small

## make test             installs what is missing, builds, runs the specs, JOBS=2 files at a time; SPEC=spec/kernels runs some
test:
	@sh .ci/deps
	@$(MAKE_ALL) specs

specs: $(LIB) $(SPECLIB)
	@$(if $(filter spec,$(SPEC)),echo 'All specs take about five minutes of processor time; make test SPEC=spec/engine runs a part of them.')
	PERIGEE_LIB="$(abspath $(SPECLIB))" sh spec/support/run.sh $(JOBS) 'busted --lua=$(LUAJIT) $(BUSTED_FLAGS)' $(SPEC)

## make slow             the specs of spec/slow, one after another: speed, installation
slow:
	@sh .ci/deps
	@$(MAKE_ALL) JOBS=1 SPEC=spec/slow specs

## make deps             installs what is missing: Debian packages as root, else it prints the command
deps:
	@sh .ci/deps

# ---- The library ------------------------------------------------------------------------------------------------------

$(LIB): $(OBJECTS) $(BUILD)/files
	@echo "  LINK $@"
	$(QUIET)$(CC) $(SHARED) -Wl,-soname,$(SONAME) $(OPT) $(CFLAGS) $(filter %.o,$^) -o $@.new $(LIBS) && mv $@.new $@

# The library's objects and those of spec/, so that specs can call functions that the library does not export.
speclib: $(SPECLIB)
$(SPECLIB): $(OBJECTS) $(SPECOBJ) $(BUILD)/files
	@echo "  LINK $@"
	$(QUIET)$(CC) $(SHARED) $(OPT) $(CFLAGS) $(filter %.o,$^) -o $@.new $(LIBS) && mv $@.new $@

stem = $(basename $(notdir $1))
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(QUIET)$(CC) $(FLAGS) $(ISA_$(call stem,$<)) $(DEFS_$(call stem,$<)) -MMD -MP -c $< -o $@

# The header as a C string for LuaJIT's FFI, which pgee_header() returns. The FFI knows neither lines with # nor extern "C".
$(BUILD)/obj/engine/base/version.o: $(BUILD)/gen/header.inc
$(BUILD)/gen/header.inc: engine/perigee.h
	@mkdir -p $(@D)
	@sed -e '/^#ifdef __cplusplus/,/^#endif/d' -e '/^#/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

# These files change when their text does. So another compiler or flag builds everything again, and another list of files links
# again.
$(BUILD)/flags: TEXT := $(CC) $(FLAGS) $(DEFS_onednn) $(DEFS_version) $(FLAGS_OF_ISAS)
$(BUILD)/files: TEXT := $(SHARED) $(SOURCES) $(SUPPORT)
$(BUILD)/flags $(BUILD)/files: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(TEXT))' > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

-include $(OBJECTS:.o=.d) $(SPECOBJ:.o=.d) $(HARDOBJ:.o=.d) $(BUILD)/obj/spec/fuzz/main.d

# ---- Checks -----------------------------------------------------------------------------------------------------------

C_FILES   := $(wildcard $(addsuffix /*.[ch],engine engine/* kernels kernels/* spec/* spec/*/* recipes/embed))
LUA_FILES := $(wildcard lua recipes recipes/perigee spec .busted .luacheckrc)

## make lint             luacheck, ruff, cppcheck, clang-format, shellcheck, floats that Lua must not load; perigee.h as C++;
##                       gcc and clang with -Werror
lint:
	@sh .ci/deps lint embed
	luacheck --quiet $(LUA_FILES)
	sh .ci/floats lua recipes
	! grep -rnF --include='*.lua' 'ffi.cdef' lua recipes | grep -vE '^lua/perigee/(ffi|find|os|os/process|repl/readline)\.lua:' # they declare C
	! grep -rInE '^(<<<<<<<|>>>>>>>) ' Makefile *.md .ci engine kernels lua recipes spec # of a conflict that was not resolved
	build/ruff/ruff check --quiet --no-cache --config .ci/ruff.toml kernels recipes spec
	@echo clang-format; sh .ci/format $(C_FILES)
	$(CXX) -std=c++11 -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only engine/perigee.h
	cppcheck --quiet -I. --std=c11 --language=c --error-exitcode=1 --inline-suppr --enable=warning,performance \
	  --suppress=normalCheckLevelMaxBranches -j $(shell nproc) $(SOURCES)
	shellcheck -e SC1091 $(filter-out %.toml,$(wildcard .ci/*)) $(wildcard recipes/cluster/*.sh spec/*/*.sh)
	@$(MAKE_ALL) CC=gcc CFLAGS=-Werror BUILD=build/gcc lib speclib embed-host
	@$(MAKE_ALL) CC=clang CFLAGS=-Werror BUILD=build/clang lib speclib embed-host

# bin/luajit links the sanitizers' runtimes, because they must be in the process before it loads the library.
HARD := -DPGEE_HARD -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
UBSAN := -DPGEE_HARD -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
TSAN := -DPGEE_HARD -fsanitize=thread
FUZZ := $(HARD) -fsanitize=fuzzer-no-link

# Before which calls into the library garbage is collected: short, sampled or full (spec/support/collect.lua). If it is empty, Lua
# decides.
COLLECT := sampled

## make hard             the specs under AddressSanitizer and UndefinedBehaviorSanitizer, with poisoned memory, failing allocations and
##                       a garbage collector that never pauses
hard:
	@sh .ci/deps hard
	@$(MAKE_ALL) BUILD=build/hard OPT=-O1 CFLAGS='$(HARD)' COLLECT='$(COLLECT)' hard-run

## make hard-gc          the same with far more collections; SPEC=spec/lua some specs
hard-gc: COLLECT := full
hard-gc: hard

## make hard-clang       the specs of tokenizers and the C core under clang's UndefinedBehaviorSanitizer, which finds more than gcc's
hard-clang: SPEC := spec/engine spec/golden/tokenizer
hard-clang:
	@sh .ci/deps hard lint
	@$(MAKE_ALL) CC=clang BUILD=build/ubsan OPT=-O1 CFLAGS='$(UBSAN)' SPEC='$(SPEC)' COLLECT= hard-run

hard-run: $(BUILD)/bin/luajit $(BUILD)/hard_threads $(SPECLIB)
	$(BUILD)/hard_threads
	PATH="$(abspath $(BUILD)/bin)":$$PATH PERIGEE_LIB="$(abspath $(SPECLIB))" PERIGEE_HARD=1 PERIGEE_COLLECT='$(COLLECT)' \
	  sh spec/support/run.sh $(JOBS) 'luajit spec/support/hard_busted.lua $(BUSTED_FLAGS)' $(patsubst spec,spec spec/slow,$(SPEC))

$(BUILD)/bin/luajit: $(BUILD)/obj/spec/support/hard_host.o
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(QUIET)$(CC) $(CFLAGS) $< -o $@ -rdynamic -lluajit-5.1 -lm -ldl
DEFS_hard_host := -isystem /usr/include/luajit-2.1

## make tsan             the team and plans under ThreadSanitizer
tsan:
	@sh .ci/deps
	@$(MAKE_ALL) BUILD=build/tsan OPT=-O1 CFLAGS='$(TSAN)' tsan-run

tsan-run: $(BUILD)/hard_threads
	$(BUILD)/hard_threads

$(BUILD)/hard_threads: $(OBJECTS) $(BUILD)/obj/spec/support/hard_threads.o
	@echo "  LINK $@"
	$(QUIET)$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

## make debian13         builds and tests in a Debian 13 (gcc 14) of its own, as root: run it every week. SPEC=spec/kernels some specs
debian13:
	sh .ci/debian13 $(SPEC)

## make fuzz             random inputs for everything that reads foreign files and texts, FUZZ_SECONDS=600 each; spec/fuzz/README.md
FUZZ_SECONDS := 600
fuzz:
	@sh .ci/deps hard fuzz
	@$(MAKE_ALL) BUILD=build/hard OPT=-O1 CFLAGS='$(HARD)' build/hard/bin/luajit build/hard/libperigee_spec.so
	@$(MAKE_ALL) BUILD=build/fuzz OPT=-O1 CC=clang CFLAGS='$(FUZZ)' build/fuzz/bin/fuzz
	sh spec/fuzz/run.sh $(FUZZ_SECONDS) $(TARGETS)

$(BUILD)/bin/fuzz: $(OBJECTS) $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard spec/fuzz/*.c))
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(QUIET)$(CC) $(CFLAGS) -fsanitize=fuzzer $^ -o $@ $(LIBS)

## make exact            compares the golden digests of builds by gcc and clang, -O1 to -O3
EXACT := $(foreach cc,gcc clang,$(foreach opt,O1 O2 O3,exact-$(cc)-$(opt)))
exact: $(EXACT)
$(EXACT): exact-%:
	@sh .ci/deps lint
	@$(MAKE_ALL) CC=$(word 1,$(subst -, ,$*)) OPT=-$(word 2,$(subst -, ,$*)) BUILD=build/exact/$* lib
	PERIGEE_LIB="$(abspath build/exact/$*/libperigee.so)" PERIGEE_CACHE="$(abspath build/cache)" $(LUAJIT) spec/golden/exact.lua

## make portable         cross-compiles for AArch64; runs kernel and golden specs under qemu: the digests are those of x86-64
AARCH64 := build/portable
portable:
	@sh .ci/deps portable
	@sh .ci/fetch arm64 $(AARCH64)/root
	@$(MAKE_ALL) CC=aarch64-linux-gnu-gcc CFLAGS=-Werror BUILD=$(AARCH64) lib speclib
	sh spec/support/aarch64.sh $(AARCH64) luajit spec/golden/exact.lua
	PERIGEE_HARD=1 sh spec/support/aarch64.sh $(AARCH64) busted $(BUSTED_FLAGS) spec/kernels \
	  spec/golden/compare_spec.lua spec/golden/models_spec.lua spec/golden/heads_spec.lua spec/lua/run/cases_spec.lua

## make kills            kills recipes/pipe.lua 200 times, which still answers each line once, and saving, which leaves a whole file; KILLS=50
KILLS := 200
kills: $(LIB) $(SPECLIB)
	PERIGEE_KILLS=$(KILLS) PERIGEE_LIB="$(abspath $(SPECLIB))" busted --lua=$(LUAJIT) --filter=where.it.stopped spec/recipes/pipe_spec.lua
	PERIGEE_KILLS=$(KILLS) PERIGEE_LIB="$(abspath $(SPECLIB))" busted --lua=$(LUAJIT) --filter=is.killed spec/lua/artifact/artifact_process_spec.lua

## make quality          the accuracy that INT8 loses on the whole data sets of ../shared, with intervals, and its speed; six minutes
quality: export PERIGEE_QUALITY := 1
quality:
	@sh .ci/deps
	@$(MAKE_ALL) SPEC=spec/golden/quality_spec.lua specs

# ---- Speed ------------------------------------------------------------------------------------------------------------

# The number of the CPU on which benches run.
CPU := 0

## make model-amx        predicts the share of AMX's peak for known encoders by counting instructions; measures it if the CPU has AMX
model-amx: $(SPECLIB)
	PERIGEE_LIB="$(abspath $(SPECLIB))" $(LUAJIT) spec/bench/amx_model.lua

## make bench-amx        ten minutes on a CPU with AMX: peaks, kernels, encoders, selection, other libraries, into build/bench/amx.txt
bench-amx: $(LIB) $(SPECLIB)
	PERIGEE_LIB="$(abspath $(SPECLIB))" sh spec/bench/amx.sh build/bench/amx.txt $(CPU)

## make bench-kernels    times every kernel of every ISA on the shapes of models, and compares with the run before; CPU=1 another core
bench-kernels: $(LIB) $(SPECLIB)
	PERIGEE_LIB="$(abspath $(SPECLIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/kernels.lua --save build/bench/kernels.json

## make bench-peers      times models against other libraries, which it installs into build/peers; ROWS='minilm:1x32' some
bench-peers: $(LIB) build/peers/installed
	taskset -c $(CPU) build/peers/bin/python spec/bench/peers.py $(ROWS)

## make bench-mixed      the same on texts of mixed lengths, of STS-B and XQuAD in ../shared: SENTENCES=256 and PAIRS=32 of them
SENTENCES := 256
PAIRS := 32
DATA := $(or $(PERIGEE_SHARED),../shared)/data
bench-mixed: $(LIB) build/peers/installed
	PERIGEE_LIB="$(abspath $(LIB))" $(LUAJIT) spec/bench/lengths.lua build/demo/all-MiniLM-L6-v2 $(DATA)/stsb/sts-test.csv \
	  | head -n $(SENTENCES) > build/peers/stsb
	PERIGEE_LIB="$(abspath $(LIB))" $(LUAJIT) spec/bench/lengths.lua build/demo/all-MiniLM-L6-v2 $(DATA)/xquad/xquad.en.json 384 \
	  | head -n $(PAIRS) > build/peers/xquad
	taskset -c $(CPU) build/peers/bin/python spec/bench/peers.py minilm bert-base --mixed build/peers/stsb,build/peers/xquad \
	  --peers onnxruntime-int8,openvino-int8,ctranslate2-int8 --modes static --rounds 3 $(ROWS)

## make bench-tokenizers times tokenizers against the tokenizers package, one thread, texts of ../shared
bench-tokenizers: $(LIB) build/peers/installed
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) build/peers/bin/python spec/bench/tokenizer_peers.py

## make differential     compares tokenizers with the tokenizers package on generated texts and on ../shared's; TEXTS=100000 how many
TEXTS := 20000
differential: $(LIB) build/peers/installed
	build/peers/bin/pip install --quiet sentencepiece protobuf
	for script in differential differential_pipeline differential_shared differential_unigram; do \
	  PERIGEE_LIB="$(abspath $(LIB))" build/peers/bin/python spec/golden/tokenizer/$$script.py --texts $(TEXTS) || exit 1; done
	PERIGEE_LIB="$(abspath $(LIB))" build/peers/bin/python spec/golden/tokenizer/differential_folders.py --folders 1000

## make differential-files  compares with sentence-transformers on random files beside the weights; SEED=1 FOLDERS=100
SEED := 1
FOLDERS := 100
differential-files: $(LIB) build/peers/installed
	build/peers/bin/pip install --quiet sentence-transformers==6.2.0 peft==0.21.2
	PERIGEE_LIB="$(abspath $(LIB))" LUAJIT="$(LUAJIT)" build/peers/bin/python spec/golden/differential.py $(SEED) $(FOLDERS)

## make bench-cliffs     fails if one token more costs much more time: MiniLM, 8 to 4096 tokens
bench-cliffs: $(LIB)
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/cliffs.lua

## make bench-heads      the part of a run that is FP32: fill_mask of random models; HEADS='FOLDER...' the heads of checkpoints
bench-heads: $(LIB)
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/heads.lua $(HEADS)

## make bench-pipe       the time of recipes/pipe.lua relative to the engine alone, on SST-2's training texts; TEXTS=4000 on some
bench-pipe: $(LIB)
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/pipe.lua $(TEXTS)

## make bench-open       the time from the start of a process to its first answer, with artifacts of three models
bench-open: $(LIB)
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/open.lua

build/peers/installed: spec/bench/peers.txt
	python3 -m venv build/peers
	build/peers/bin/pip install --quiet --requirement $<
	@touch $@

## make figures          the tables of lua/FIGURES.md about gain and cost of settings; three minutes. PARTS='outliers ranges' some
figures: $(LIB)
	PERIGEE_LIB="$(abspath $(LIB))" taskset -c $(CPU) $(LUAJIT) spec/bench/figures.lua $(PARTS)

## make format           clang-format over the C files
format:
	@sh .ci/format -i $(C_FILES)

# ---- Other languages --------------------------------------------------------------------------------------------------

## make embed            recipes/embed/host.c, a program that links the core and LuaJIT; recipes/embed/perigee.py needs no building
embed:
	@sh .ci/deps embed
	@$(MAKE_ALL) embed-host

embed-host: $(BUILD)/embed/host
$(BUILD)/embed/host: recipes/embed/host.c $(LIB)
	@mkdir -p $(@D)
	@ln -sf ../libperigee.so $(@D)/$(SONAME)
	@echo "  LINK $@"
	$(QUIET)$(CC) -std=c11 -D_GNU_SOURCE $(OPT) -g -pthread $(WARN) $(CFLAGS) -isystem /usr/include/luajit-2.1 -Iengine $< -o $@ \
	  -L$(BUILD) -lperigee -lluajit-5.1 -lm -Wl,-rpath,'$$ORIGIN'

## make load             recipes/serve.lua under wrk, 64 connections for LOAD_SECONDS=60 seconds, beside the engine alone
LOAD_SECONDS := 60
load: $(LIB)
	@sh .ci/deps serve model
	PERIGEE_LIB="$(abspath $(LIB))" $(LUAJIT) spec/bench/serve.lua build/demo/all-MiniLM-L6-v2 recipes/data/calibration.txt $(LOAD_SECONDS)

## make serve-clients    recipes/serve.lua asked by clients from PyPI: openai, huggingface_hub, langchain, llama-index, haystack, cohere
serve-clients: $(LIB) build/clients/installed
	@sh .ci/deps serve
	PERIGEE_LIB="$(abspath $(LIB))" $(LUAJIT) spec/recipes/clients.lua build/clients/bin/python

build/clients/installed: spec/recipes/clients.txt
	python3 -m venv build/clients
	build/clients/bin/pip install --quiet --requirement $<
	@touch $@

## make spark            recipes/cluster/spark.py on a local cluster, of which a worker is killed; installs PySpark, which needs Java
spark: $(LIB) build/spark/installed
	PATH="$(abspath build/spark/bin):$$PATH" PERIGEE_LIB="$(abspath $(LIB))" build/spark/bin/python spec/recipes/spark.py \
	  spec/golden/checkpoints/embedder

build/spark/installed: spec/recipes/spark.txt
	python3 -m venv build/spark
	build/spark/bin/pip install --quiet --requirement $<
	@touch $@

# ---- Installation -----------------------------------------------------------------------------------------------------

# PREFIX and DESTDIR are passed in the environment, so that they may have any character.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export DESTDIR := $(DESTDIR)

## make install          to PREFIX=/usr/local, below DESTDIR if set
install: $(LIB)
	sh .ci/install $(LIB) $(VERSION)

## make uninstall        removes the files that `make install` put into PREFIX, below DESTDIR if set
uninstall:
	sh .ci/install --remove

## make clean            removes all that was built; `rm -r build` also removes downloads
clean:
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/flags $(BUILD)/files $(LIB) $(SPECLIB) $(addprefix build/,gcc clang hard ubsan tsan exact fuzz embed)

## make help             this list
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'CC=clang another compiler, CFLAGS= flags after ours, OPT=-O3 another optimization, BUILD=build/x another folder to'
	@echo 'build in, V=1 shows the commands.'

# Perigee. There is no configure step; `make help` lists what there is to make.
#
#   CC=clang       another compiler            CFLAGS=...     flags of your own, after ours
#   OPT=-O3        another optimization        BUILD=build/x  another folder to build in
VERSION := 0.1.0
BUILD   := build
OPT     := -O2
ifeq ($(origin CC),default)
CC := gcc
endif

# A file's stem says which instructions it may use; every other stem gets plain x86-64.
ISA_avx2       := -mavx2 -mfma -mf16c
ISA_avxvnni    := $(ISA_avx2) -mavxvnni
ISA_avx512vnni := $(ISA_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni
ISA_amx        := $(ISA_avx512vnni) -mamx-tile -mamx-int8

WARN  := -Wall -Wextra -Wshadow -Wvla
FLAGS := -std=c11 -D_GNU_SOURCE $(OPT) -g -ffp-contract=off -fPIC -fvisibility=hidden -pthread $(WARN) $(CFLAGS)
LIBS  := -ldl -lpthread -lm

# oneDNN 3: what `make deps` unpacked, else what the system has. Its library is opened on first use, never linked.
DEPS := build/deps
ONEDNN := $(firstword $(wildcard $(DEPS)/onednn/include/oneapi/dnnl/dnnl.h /usr/include/oneapi/dnnl/dnnl.h))
ifneq ($(ONEDNN),)
DEFS_onednn := -DPGEE_HAVE_ONEDNN $(if $(filter $(DEPS)/%,$(ONEDNN)),\
  -isystem $(DEPS)/onednn/include -DPGEE_ONEDNN_PATH='"$(abspath $(DEPS)/onednn/lib/libdnnl.so.3)"')
endif
DEFS_version := -DPGEE_VERSION='"$(VERSION)"' -I$(BUILD)/gen

SOURCES := $(wildcard engine/*.c engine/tokenizer/*.c kernels/*.c kernels/*/*.c)
SPECS   := $(filter-out spec/support/hard_%,$(wildcard spec/support/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/obj/%.o)
SPECOBJ := $(SPECS:%.c=$(BUILD)/obj/%.o)
LIB     := $(BUILD)/libperigee.so
SPECLIB := $(BUILD)/libperigee_spec.so

LUAJIT := luajit
BUSTED := PERIGEE_LIB=$(abspath $(SPECLIB)) busted --lua=$(shell command -v $(LUAJIT) || echo $(LUAJIT))

.PHONY: all lib speclib test help clean FORCE
.DELETE_ON_ERROR:

all: $(LIB)

## lib          the library (this is what plain `make` does)
lib: $(LIB)

## speclib      the library that the specs load: the same objects, and spec/support's
speclib: $(SPECLIB)

## test         all specs
test: $(LIB) $(SPECLIB)
	$(BUSTED) $(SPEC)

$(LIB): $(OBJECTS)
	$(CC) -shared -Wl,-soname,libperigee.so.0 $(OPT) $(CFLAGS) $^ -o $@ $(LIBS)

$(SPECLIB): $(OBJECTS) $(SPECOBJ)
	$(CC) -shared $(OPT) $(CFLAGS) $^ -o $@ $(LIBS)

stem = $(basename $(notdir $1))
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(ISA_$(call stem,$<)) $(DEFS_$(call stem,$<)) -MMD -MP -c $< -o $@

# The header as the FFI takes it, a C string: pgee_header() returns it.
$(BUILD)/obj/engine/version.o: $(BUILD)/gen/header.inc
$(BUILD)/gen/header.inc: engine/perigee.h
	@mkdir -p $(@D)
	sed -e '/^#/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

# Changes when a flag does, so that everything is built again.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(FLAGS) $(DEFS_onednn) $(DEFS_version))' | cmp -s - $@ || \
	  printf '%s\n' '$(subst ','\'',$(CC) $(FLAGS) $(DEFS_onednn) $(DEFS_version))' > $@

-include $(OBJECTS:.o=.d) $(SPECOBJ:.o=.d)

## clean        removes what was built; what was downloaded stays (`rm -r build` removes both)
clean:
	rm -rf $(BUILD)/obj $(BUILD)/gen $(BUILD)/flags $(LIB) $(SPECLIB)

## help         this list
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

"""Texts for the golden ids, written or generated here. texts() returns a list of (text, pair or None, max_tokens or None)."""
import random

SENTENCES = """
The quick brown fox jumps over the lazy dog. It wasn't amused!
Is this 3.14159 or 2,718? See section 4.2 (page 12).
A state-of-the-art encoder's throughput: 1,200 texts/s @ 95% load.
E-mail me at first.last+tag@example.org or visit http://example.org/a?b=c&d=e#f.
Antidisestablishmentarianism and floccinaucinihilipilification are long words.
"Quotes", 'single ones', “curly” and ‘nested “ones”’ — with dashes – and ellipses…
Der schnelle braune Fuchs springt über den faulen Hund; größer, Straße, ÄÖÜ, äöü.
Donaudampfschifffahrtsgesellschaftskapitän ist ein zusammengesetztes Wort.
Weiß der Müller, wieviel Mehl in die Tüte passt? STRASSE und STRAẞE.
El veloz murciélago hindú comía feliz cardillo y kiwi. ¿Qué pasó? ¡Nada!
La cigüeña tocaba el saxofón detrás del palenque de paja, en el año nuevo.
Voix ambiguë d’un cœur qui, au zéphyr, préfère les jattes de kiwis.
L'élève était très doué ; « vraiment », dit-il à Noël, où ça ?
Quel vituperabile xenofobo zelante assaggia il whisky ed esclama: alleluja! È così, perché no?
À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso e faz um chá com açúcar.
Pa's wijze lynx bezag vroom het fikse aquaduct. Één coöperatie in IJmuiden.
Pchnąć w tę łódź jeża lub ośm skrzyń fig. Zażółć gęślą jaźń.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Árvíztűrő tükörfúrógép és ősszel hűvös szél.
Gheorghe, obezul, a reuşit să obţină jucându-se un flux în Quebec de o mie kilowaţioră. Şi ţara.
Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul'da IĞDIR, ılık süt, DİYARBAKIR.
Törkylempijävongahdus: älä öykkäröi, hyvä mies!
Flygande bäckasiner söka hwila på mjuka tuvor i Ångermanland.
Trăm năm trong cõi người ta, chữ tài chữ mệnh khéo là ghét nhau. Đường phố Hà Nội.
Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία. Ο Σίσυφος, ΟΔΥΣΣΕΥΣ; ΐ ΰ ᾳ ῷ.
Съешь же ещё этих мягких французских булок, да выпей чаю. ЙОД и ёлка.
Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів!
Ах чудна българска земьо, полюшвай цъфтящи жита.
صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت. هل هذا سؤال؟ نعم، بالتأكيد؛ ١٢٣.
این یک جملهٔ فارسی است که نیم‌فاصله دارد.
דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם!
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम। क्या?
আমি বাংলায় গান গাই। কেমন আছো?
யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்.
ಕನ್ನಡದಲ್ಲಿ ಒಂದು ವಾಕ್ಯ: ನಾನು ಕೋತಿ ಕಂಡೆ.
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
དཀར་པོའི་རི། གངས་རི་མཐོན་པོ།
敏捷的棕色狐狸跳过了懒狗。这是什么？人工智能，2026年！
繁體中文：天地玄黃，宇宙洪荒。「引號」與『雙引號』。
いろはにほへと ちりぬるを。カタカナとガギグゲゴ、ﾊﾝｶｸ。東京都に住む人々。
다람쥐 헌 쳇바퀴에 타고파. 한국어 문장입니다! 각 갉 힣
ᄒᆞᆫ글 옛글과 가나다 조합.
ქართული ანბანი: ვეფხისტყაოსანი. ᲥᲐᲠᲗᲣᲚᲘ
Հայերեն նախադասություն։ ՀԱՅԱՍՏԱՆ և երեք։
አማርኛ ዓረፍተ ነገር። እንዴት ነህ፧
ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ꮳꮃꭹ
Ǆ ǅ ǆ ǈ ǋ ﬁ ﬂ ﬃ ŉ ǰ ẖ ẗ Å Ω K ℡ № ™ ℃ ① ㎏ Ⅷ ½
x² + y² = z²; ∑ᵢ aᵢ ≤ ∫₀^∞ e^{-t}dt ≠ ⌈π⌉ ± √2 → ∞ ⊄ ∄ ≢
𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝓽𝓮𝔁𝓽 𝕎𝕀𝔻𝔼 Ｆｕｌｌｗｉｄｔｈ，ＡＢＣ！ 𐐀𐐁𐐨 𞤀𞤢
$5.00 €20 £3 ¥1000 ₹50 ₿1 100% 5‰ ^caret `tick` |pipe| ~tilde~ <tag> =+= _under_score_
""".strip().split("\n")

EMOJI = ["😀", "❤️", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "1️⃣", "☎︎", "🧑🏿‍🚀", "🫠", "⚡", "🤷‍♀️", "🐻‍❄️", "㊗️", "©", "®️", "♂", "🎉🎉🎉"]
TOKENS = ["[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"]

# Parts for which the code has branches: controls, every kind of space, marks in and out of order, decompositions, ideographs, syllables.
PARTS = {
    "control": "\0 \x01 \x07 \x08 \x0b \x0c \x1b \x1f \x7f \x80 \x85 \x9f \xad \u200b \u200c \u200d \u200e \u202a \u2060 "
               "\ufeff \ufff9 \ufffd \ue000 \U000e0001 \U000f0000 \U0010ffff \u0378 \uffff".split(" "),
    "space": ["\t", "\n", "\r", "\r\n", "\xa0", "\u1680", "\u2000", "\u2003",
              "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"],
    "mark": list("\u0300\u0301\u0302\u0303\u0308\u030a\u0315\u0316\u0323\u0327\u0328\u0334\u0338\u0345\u0344\u0360\u0483"
                 "\u0591\u064b"
                 "\u0651\u093c\u094d\u0e38\u0f71\u0f72\u0f73\u302a\u3099\u20d0\u20dd\u1dfa\u1ab0\u0898\u08d4\ufe0f"),
    "moving": list("\u1b44\u1baa\u1bf2\u302e\u302f\ua953\u1d165\ua9c0\U000111c0\U00011235\U0001d165\U0001d166\U0001d16d"
                   "\U0001e000\U0001e944\u08d4\u1dfb"),
    "split": list("\xc0\xe9\xf1\u0130\u01d5\u01ed\u0344\u0374\u037e\u0387\u0390\u0958\u09cb\u0b94\u0ccb\u0f73\u0f81\u1e09"
                  "\u1e14\u1e69"
                  "\u1fee\u1ff7\u2000\u2126\u212a\u226e\u2adc\u30ac\uac00\uac01\ud7a3\uf900\ufb1d\U0001109a\U0001d15e"
                  "\U0001d160\U0002f800"),
    "cjk": list("\u4e00\u9fff\u3400\u4dbf\uf900\ufaff\u3007\u30fb\u3042\u30a2\u3105\U00020000\U0002a6df\U0002b740\U0002b820"
                "\U0002b920\U0002ceaf\U0002ceb0\U0002f800\U00030000"),
    "punct": list("!?.,;:'\"()[]{}<>#@&*_-/\\|^~`$%+=\xa1\xa7\xb6\xbf\u2010\u2014\u2018\u201d\u2026\u2030\u3001\u3002\uff01"
                  "\uff0c\u055e\u061f\u0964\u0e4f\u10fb\u1362\u166e\u2308\u2cf9\ufe10\U00010100\U0001f600"),
    "case": list("AZaz\xc4\xdf\u0130\u0131\u0149\u01c4\u01c5\u0345\u03a3\u03c2\u03c3\u10a0\u13a0\u1c90\u1e9e\u1f88\u1fbc"
                 "\u2c2f\ua7ae\uab70\U00010400\U000104b0\U00016e40\U0001e921"),
    "letter": list("abcdefghijklmnopqrstuvwxyz"),
    "emoji": EMOJI,
    "token": TOKENS + ["[cls]", "[ SEP ]", "[MASK", "MASK]", "[[MASK]]", "[UNK]s"],
    "word": [w for s in SENTENCES for w in s.split(" ")],
}


def generated(rng):
    names = list(PARTS)
    weights = rng.sample(names, rng.randint(1, 3)) + rng.choice([[], ["letter"], ["word"], ["word", "token"]])
    glue = rng.choice(["", "", " ", " ", "e", "\u0301"])
    return glue.join(rng.choice(PARTS[rng.choice(weights)]) for _ in range(rng.randint(1, 14)))


def texts():
    rng = random.Random(20260101)
    plain = list(SENTENCES)
    plain += ["", " ", "\t\n", "\0", "\ufffd", "a", "é", "中", "[CLS]", "[SEP][SEP]", "a[MASK]b", "[CLS] a [SEP] b [SEP]", ""
    "\u0301", "\u200d"]
    plain += [s + " " + "".join(rng.sample(EMOJI, 3)) for s in SENTENCES[:12]]
    plain += [c * n for c in ("a", "é", "中", "e\u0301", "ab", "#") for n in (50, 51, 99, 100, 101, 200)]
    plain += ["x" + "".join(rng.choice(PARTS["mark"]) for _ in range(n)) + "y" for n in (2, 3, 5, 17, 33, 70) for _ in range(4)]
    marks = PARTS["mark"] + PARTS["moving"] * 2
    plain += ["o" + "".join(rng.choice(marks) for _ in range(n)) + "z" for n in (2, 3, 4, 6, 40) for _ in range(8)]
    plain += [generated(rng) for _ in range(560)]
    plain += [" ".join(rng.sample(SENTENCES, 8)) for _ in range(6)]
    cases = [(t, None, None) for t in plain]
    cases += [(t, None, rng.choice([2, 3, 5, 8, 16])) for t in rng.sample(plain, 60)]
    cases += [(rng.choice(plain), rng.choice(plain), rng.choice([None, None, 3, 4, 5, 6, 7, 12, 13, 30])) for _ in range(140)]
    return cases

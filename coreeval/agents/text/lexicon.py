"""Word lists of the checks: words without content, words that need evidence or may do harm."""


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _split(
    """
    a about above across after again against ago all almost along already also although always am
    among an and another any anybody anyone anything are aren't around as at away back be because
    been before behind being below between both but by can can't cannot could couldn't did didn't do
    does doesn't doing don't done down during each either else enough even ever every everyone
    everything few for from further get gets getting go goes going gone got had hadn't has hasn't
    have haven't having he he's her here hers herself him himself his how however i i'd i'll i'm
    i've if in instead into is isn't it it's its itself just least less let let's like lot made make
    makes many may maybe me might mine more most much must my myself near neither never no nobody
    none nor not nothing now of off often on once one ones only onto or other others our ours
    ourselves out over own per perhaps quite rather really same shall she she's should shouldn't
    since so some somebody someone something soon still such than that that's the their theirs them
    themselves then there there's these they they're this those though through throughout thus to
    together too toward towards under unless until up upon us very via was wasn't way we we're we've
    well were weren't what what's when where whether which while who who's whom whose why will with
    within without won't would wouldn't yes yet you you're your yours yourself s t d m re ve ll im
    dont cant wont didnt doesnt isnt ur u
    """
)
"""Words without checkable content."""

LIGHT_VERBS = _split(
    """
    come comes came coming become becomes became becoming
    """
)
"""Verbs that need no evidence, because the meaning is in the words beside them: `the reopening
comes days after`. Verbs that may state an act, such as `take` and `give`, are excluded."""

REPORTING_WORDS = _split(
    """
    said say says saying told tell tells according reported reportedly report reports find finds
    found show shows showed call calls called describe describes described mention mentions
    mentioned speak speaks spoke state states stated
    """
)
"""Words that may introduce a quotation; headlines use a colon instead."""

PERSONAL_WORDS = _split(
    """
    people person someone somebody folks guy guys family families friend friends mom mum mother dad
    father parents kid kids son daughter brother sister wife husband gran granny grandma grandpa
    grandad nan nana aunt auntie uncle cousin niece nephew home house book books plan plans day
    today morning night weekend life world job work phd
    """
)
"""Words of the anonymous speaker's own world, which need no support (trials: false alarms)."""

WEEKDAYS = _split(
    """
    monday tuesday wednesday thursday friday saturday sunday
    """
)
CALENDAR = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
MONTHS = frozenset(CALENDAR)
MONTH_SHORT = {name[:3]: name for name in MONTHS if name != "may"} | {"sept": "september"}
"""Short forms of month names; they count as months only next to a number."""
NOT_NAMES = _split(
    """
    i i'm i'd i'll i've im ok okay tv omg lol lmao wtf ffs smh tbh fyi mr mrs ms dr sir madam ps rt
    am pm god lord jesus happy merry christmas nope yep yeah yes wow ugh hey hmm huh oh ah yay damn
    whoa gosh geez haha hell thanks please sorry hi hello bye
    """
)
"""Capitalised words that are not names."""

ABBREVIATIONS = {
    "mtd": "month to date",
    "ytd": "year to date",
    "yoy": "year over year",
    "govt": "government",
    "gov": "governor",
    "usa": "united states",
    "uk": "united kingdom",
    "eu": "european union",
    "un": "united nations",
    "uae": "united arab emirates",
    "pm": "prime minister",
    "ceo": "chief executive officer",
    "cfo": "chief financial officer",
    "coo": "chief operating officer",
    "fed": "federal reserve",
    "ecb": "european central bank",
    "gop": "republican",
    "ai": "artificial intelligence",
    "ev": "electric vehicle",
    "evs": "electric vehicles",
    "ghg": "greenhouse gas",
    "gdp": "gross domestic product",
    "ipo": "initial public offering",
    "nz": "new zealand",
    "sen": "senator",
    "rep": "representative",
    "corp": "corporation",
    "co": "company",
    "inc": "incorporated",
    "intl": "international",
    "aussie": "australian",
    "aussies": "australians",
    "brit": "british",
    "brits": "british",
    "dept": "department",
    "min": "minister",
    "pct": "percent",
    "yrs": "years",
    "yr": "year",
}
"""Short forms in headlines, with their meanings; either form supports the other."""

DEMONYMS = {
    "french": "france", "british": "britain", "spanish": "spain", "turkish": "turkey",
    "dutch": "netherlands", "swiss": "switzerland", "polish": "poland", "greek": "greece",
    "danish": "denmark", "swedish": "sweden", "finnish": "finland", "irish": "ireland",
    "scottish": "scotland", "welsh": "wales", "english": "england", "thai": "thailand",
    "norwegian": "norway", "filipino": "philippines", "chinese": "china", "canadian": "canada",
    "mexican": "mexico", "german": "germany", "italian": "italy", "japanese": "japan",
    "russian": "russia", "indian": "india", "israeli": "israel", "european": "europe",
    "spaniard": "spain", "dane": "denmark", "swede": "sweden", "finn": "finland",
    "turk": "turkey", "scot": "scotland", "briton": "britain", "portuguese": "portugal",
    "ukrainian": "ukraine", "hungarian": "hungary", "belgian": "belgium", "afghan": "afghanistan",
    "lebanese": "lebanon", "peruvian": "peru",
}  # fmt: skip
"""Peoples and their places; either form supports the other."""

SYMBOLS = {
    "%": "percent",
    "$": "dollar",
    "€": "euro",
    "£": "pound",
    "¥": "yen",
    "₹": "rupee",
    "°c": "degrees celsius",
    "°f": "degrees fahrenheit",
    "° c": "degrees celsius",
    "° f": "degrees fahrenheit",
    "°": "degrees",
    "&": "and",
    "+": "plus",
}
"""Signs, with the words for them."""

IRREGULAR = {
    "rally": "rallied", "tally": "tallied", "ally": "allied", "bully": "bullied",
    "says": "say", "said": "say", "rose": "rise", "risen": "rise", "fell": "fall",
    "fallen": "fall", "won": "win", "lost": "lose", "bought": "buy", "sold": "sell",
    "made": "make", "began": "begin", "begun": "begin", "grew": "grow", "grown": "grow",
    "held": "hold", "hit": "hit", "kept": "keep", "led": "lead", "left": "leave", "met": "meet",
    "paid": "pay", "ran": "run", "saw": "see", "seen": "see", "sent": "send", "spent": "spend",
    "struck": "strike", "took": "take", "taken": "take", "told": "tell", "went": "go",
    "wrote": "write", "written": "write", "gave": "give", "given": "give", "broke": "break",
    "broken": "break", "built": "build", "came": "come", "drew": "draw", "found": "find",
    "threw": "throw", "thrown": "throw", "drawn": "draw", "spoke": "speak", "spoken": "speak",
    "drove": "drive", "driven": "drive", "froze": "freeze", "frozen": "freeze", "stole": "steal",
    "stolen": "steal", "chose": "choose", "chosen": "choose", "shook": "shake", "shaken": "shake",
    "knew": "know", "known": "know", "flew": "fly", "flown": "fly", "sank": "sink", "sunk": "sink",
    "shot": "shoot", "sought": "seek", "caught": "catch", "taught": "teach", "thought": "think",
    "brought": "bring", "fought": "fight", "felt": "feel", "heard": "hear", "stood": "stand",
    "understood": "understand", "hid": "hide", "hidden": "hide", "withdrew": "withdraw",
    "withdrawn": "withdraw", "undertook": "undertake", "undertaken": "undertake",
    "children": "child", "men": "man", "women": "woman", "lives": "life",
}  # fmt: skip
"""Forms of common news words that no rule for endings finds."""

CONDUCT_WORDS = _split(
    """
    abandon abuse accuse admit arrest assault attack ban betray blame bribe censor charge cheat
    condemn confess convict deceive deny detain expel fine fire flee force harass hide hid humiliate
    ignore indict insult jail kick kill liar lied mock murder order oust quit refuse reject resign
    sack shoot silence slam smuggle snub steal stole sue threaten
    """
)
"""Words for alleged conduct; the evidence needs the same word (pilot §4.5). Places lie too, so
`lie` itself is excluded."""

NO_CONDUCT = _split("charging fine order orders")
"""Forms of these words that mostly are not acts: a coffee order, feeling fine, a phone charging."""

WORDS_ALIKE = {
    "beat": _split("defeat edge overcome"),
    "knock": _split("cut"),
    "old": _split("earlier former previous"),
    "outer": _split("exterior"),
    "past": _split("above exceed pass surpass top"),
    "skate": _split("skateboard skateboarder"),
    "win": _split("capture claim clinch lift take title triumph victory"),
}
"""For plain words, the words in news with the same meaning (false alarms of the trials)."""

CONDUCT_ALIKE = {
    "quit": _split("leave exit depart departure"),
    "resign": _split("quit resignation"),
    "sue": _split("lawsuit suit"),
    "ban": _split("bar prohibit forbid prohibition"),
    "reject": _split("refuse rejection refusal decline"),
    "refuse": _split("reject rejection refusal decline"),
    "fire": _split("sack dismiss dismissal"),
    "sack": _split("fire dismiss dismissal"),
    "order": _split("command instruct"),
    "arrest": _split("detain detention"),
    "detain": _split("arrest detention"),
    "charge": _split("indict indictment"),
    "threaten": _split("threat"),
}
"""For words of conduct, the words in the evidence that support them: the same act, equally serious.
"""

HARM_WORDS = _split(
    """
    abuser addict arrested bigot cancer cheat coward convicted corrupt corruption criminal crook
    cruel dead death depressed died disease disgusting drunk dumb embezzle evil fascist fraud guilty
    hypocrite idiot ill illness incompetent insane jail killed killer lazy liar lie lied loser
    molest moron murder murderer nazi overdose pathetic perjury pervert prison racist rape rapist
    scam scandal scum sexist sick stroke stupid suicide terrorist thief traitor tumor tumour useless
    vile
    """
)
"""Words that must not be transferred from the text's original person to another one (pilot
§4.2)."""

HEDGES = (
    "might", "could", "reportedly", "allegedly", "alleged", "at least", "up to", "nearly",
    "almost", "expected", "likely", "possible", "possibly", "potential", "plans to", "considers",
    "proposed",
)  # fmt: skip
"""Words whose loss turns a possibility into a fact (pilot §3: three failures)."""

PROFANITY = _split(
    """
    fuck fucks fucked fucker fuckers fuckin fucking motherfucker shit shits shitty bullshit bitch
    bitches asshole assholes cunt cunts dick dickhead piss pissed slut sluts whore whores bastard
    bastards wanker twat crap goddamn dumbass jackass
    """
)
"""Coarse words that a text may keep but not add."""

INFORMAL = _split(
    """
    u ur r n b4 2day 2nite gr8 l8r plz pls thx ty np tbh smh lol lmao lmfao rofl omg idk idc ikr fyi
    btw wtf ffs irl rn af gonna wanna gotta kinda sorta lemme gimme dunno outta cuz coz bc bcuz tho
    thru til ya yall y'all ain't aint dont cant wont didnt doesnt isnt wasnt havent shouldnt wouldnt
    couldnt im ive youre theyre whats thats lets nah nope yeah yep yup hey ugh meh haha hahaha bro
    dude bruh fam tmrw tomo ppl w/ cos em kno luv dat dis da wat wut
    """
)
"""Informal spellings that distinguish a tweet from a headline."""

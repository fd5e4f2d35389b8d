"""The German words that checks need, without lists of harm or conduct, which judges check."""

from coreeval.agents.text.word_data import joined_tens, word_set

FUNCTION_WORDS = word_set(
    """
    ab aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes
    auch auf aus außer außerdem bald bei beide beiden beim bereits bin bis bist bisher da dabei
    dadurch dafür dagegen daher damals damit danach daneben dann daran darauf daraus darf darin
    darüber darum darunter das dass daß davon davor dazu dein deine deinem deinen deiner dem den
    denen denn dennoch der deren des deshalb dessen dich die dies diese diesem diesen dieser dieses
    dir doch dort du durch dürfen ebenso eben eher eigentlich ein eine einem einen einer eines
    einige einigen einiger einiges einmal er erst es etwa etwas euch euer eure euren eurer für gab
    ganz gar gegen gehabt genau gerade gern gewesen geworden gibt habe haben habt hat hatte hatten
    her hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem ins
    inzwischen irgendwas ist ja je jede jedem jeden jeder jedes jedoch jemand jene jenem jenen jener
    jenes jetzt kann kannst kaum kein keine keinem keinen keiner keines können könnt konnte konnten
    könnte könnten längst lassen lässt mal man manche manchen mancher mehr mein meine meinem meinen
    meiner meines meist mich mir mit mittlerweile möchte möchten mögen muss müssen musste mussten
    nach nachdem neben nein nicht nichts nie niemand noch nun nur ob oben oder oft ohne schon sehr
    sei seid seien sein seine seinem seinen seiner seines seit selbst sich sie sind so sogar solch
    solche solchen solcher soll sollen sollte sollten sondern sonst soviel sowie statt trotz
    trotzdem über überhaupt um und uns unser unsere unserem unseren unserer unter viel viele vielen
    vieler vom von vor vorbei während wann war waren warst warum was weder weg wegen weil weiter
    weitere weiteren welche welchem welchen welcher welches wem wen wenig wenige weniger wenn wer
    werde werden wessen wie wieder wieso will wir wird wirklich wirst wo wobei wohl wollen wollte
    wollten worden wurde wurden würde würden zu zum zur zwar zwischen
    """
)
"""Words without checkable content."""
PERSONAL_WORDS = word_set(
    """
    leute mensch menschen freund freunde freundin familie mama papa mutter vater eltern kind kinder
    sohn tochter bruder schwester frau mann haus zuhause heim buch bücher plan pläne tag heute
    morgen gestern abend nacht wochenende leben welt job arbeit
    """
)
REPORTING_WORDS = word_set(
    """
    sagt sagte sagen gesagt berichtet berichtete berichten bericht berichte laut zufolge teilt
    teilte mitgeteilt erklärt erklärte meldet meldete melden angaben heißt hieß demnach zeigt zeigte
    zeigen nennt nannte nennen spricht sprach bezeichnet bezeichnete
    """
)
NOT_NAMES = word_set(
    """
    ich du sie wir ihr ok okay tv herr frau dr gott danke bitte hallo
    """
)
FIRST_PERSON = word_set(
    """
    ich mich mir mein meine meinem meinen meiner meines wir uns unser unsere unserem unseren unserer
    """
)
WEEKDAYS = word_set(
    """
    montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag
    """
)
MONTHS = word_set(
    """
    januar jänner februar märz april mai juni juli august september oktober november dezember
    """
)
ENDINGS = ("ungen", "enden", "ung", "end", "est", "ern", "em", "en", "er", "es", "et", "st", "te",
           "e", "n", "s", "t")  # fmt: skip
"""Endings of inflected words, the longest first; a rough list, like the English one."""

_ONES = {
    "ein": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8,
    "neun": 9,
}  # fmt: skip
_TENS = {
    "zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70,
    "achtzig": 80, "neunzig": 90,
}  # fmt: skip
_SPELT = (
    {word: value for word, value in _ONES.items() if value > 1}
    | {
        "zehn": 10, "elf": 11, "zwölf": 12, "dreizehn": 13, "vierzehn": 14, "fünfzehn": 15,
        "sechzehn": 16, "siebzehn": 17, "achtzehn": 18, "neunzehn": 19, "dutzend": 12,
        "dritte": 3, "dritten": 3, "vierte": 4, "vierten": 4, "fünfte": 5, "fünften": 5,
    }
    | _TENS
    | joined_tens(_TENS, _ONES, "{one}und{ten}")
)  # fmt: skip
NUMBERS = _SPELT | {word.casefold(): value for word, value in _SPELT.items()}
"""Number words with ß and, since texts are normalised, with ss."""
SCALES = {
    "hundert": 10**2, "tausend": 10**3, "million": 10**6, "millionen": 10**6, "mio": 10**6,
    "milliarde": 10**9, "milliarden": 10**9, "mrd": 10**9, "billion": 10**12,
    "billionen": 10**12,
}  # fmt: skip
SIGNS = {"%": "prozent", "€": "euro", "$": "dollar", "&": "und", "°": "grad"}
"""Signs, with the words for them."""

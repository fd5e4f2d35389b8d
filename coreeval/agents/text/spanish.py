"""The Spanish words that checks need, without lists of harm or conduct, which judges check."""

from coreeval.agents.text.word_data import joined_tens, word_set

FUNCTION_WORDS = word_set(
    """
    a acá ahí ahora al algo alguien algún alguna algunas alguno algunos allá allí ambos ante antes
    aquel aquella aquellas aquello aquellos aquí así aun aún aunque bajo bastante bien cada casi
    como cómo con conmigo contigo contra cual cuál cuales cualquier cuando cuándo cuanta cuanto
    cuánto de del desde después donde dónde dos durante e el él ella ellas ello ellos en entonces
    entre era eran eres es esa esas ese eso esos esta está estaba estaban estado están estar estas
    este esto estos estoy fue fueron fui ha había habían haber hace hacen hacer hacia han hasta hay
    he hemos hizo hoy incluso junto la las le les lo los luego más me mediante menos mi mí mis
    mientras misma mismas mismo mismos mucha muchas mucho muchos muy nada nadie ni ningún ninguna
    ninguno no nos nosotras nosotros nuestra nuestras nuestro nuestros nunca o os otra otras otro
    otros para pero poca pocas poco pocos por porque pudo puede pueden puedo pues que qué quien
    quién quienes se sea sean según ser será serán si sí sido siempre siendo sin sino sobre sois
    solo sólo somos son soy su sus suya suyo tal también tampoco tan tanta tanto te tendrá tener
    tengo ti tiene tienen toda todas todavía todo todos tras tu tú tus tuvo un una unas uno unos
    usted ustedes va vamos van varias varios voy vosotros vuestra vuestro y ya yo
    """
)
"""Words without checkable content."""
PERSONAL_WORDS = word_set(
    """
    gente persona personas amigo amigos amiga amigas familia mamá papá madre padre padres hijo hija
    hijos hermano hermana mujer marido casa hogar libro libros plan planes día hoy mañana noche ayer
    vida mundo trabajo
    """
)
REPORTING_WORDS = word_set(
    """
    dice dicen dijo dijeron dicho afirma afirmó informa informó informaron informe asegura aseguró
    señala señaló explica explicó según muestra mostró muestran llama llamó habla habló describe
    describió
    """
)
NOT_NAMES = word_set(
    """
    yo ok tv sr sra dr dios gracias hola señor señora
    """
)
FIRST_PERSON = word_set(
    """
    yo me mi mí mis conmigo nos nosotros nosotras nuestro nuestra nuestros nuestras
    """
)
WEEKDAYS = word_set(
    """
    lunes martes miércoles jueves viernes sábado domingo
    """
)
MONTHS = word_set(
    """
    enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre
    diciembre
    """
)
ENDINGS = ("aciones", "iciones", "acion", "icion", "iendo", "ieron", "ando", "aron", "adas", "ados",
           "idas", "idos", "ada", "ado", "ida", "ido", "ara", "era", "ira", "es", "as", "os", "an",
           "en", "ar", "er", "ir", "a", "e", "o", "s")  # fmt: skip
"""Endings of inflected words, the longest first; a rough list, like the English one."""

_ONES = {
    "un": 1, "uno": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6,
    "siete": 7, "ocho": 8, "nueve": 9,
}  # fmt: skip
_TENS = {
    "treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70, "ochenta": 80,
    "noventa": 90,
}  # fmt: skip
NUMBERS = (
    {word: value for word, value in _ONES.items() if value > 1}
    | {
        "diez": 10, "once": 11, "doce": 12, "trece": 13, "catorce": 14, "quince": 15,
        "dieciséis": 16, "diecisiete": 17, "dieciocho": 18, "diecinueve": 19, "veinte": 20,
        "veintiún": 21, "veintiuno": 21, "veintidós": 22, "veintitrés": 23, "veinticuatro": 24,
        "veinticinco": 25, "veintiséis": 26, "veintisiete": 27, "veintiocho": 28,
        "veintinueve": 29, "docena": 12, "cien": 100, "ciento": 100, "doscientos": 200,
        "trescientos": 300, "cuatrocientos": 400, "quinientos": 500, "seiscientos": 600,
        "setecientos": 700, "ochocientos": 800, "novecientos": 900,
    }
    | _TENS
    | joined_tens(_TENS, _ONES, "{ten} y {one}")
)  # fmt: skip
SCALES = {
    "mil": 10**3, "millón": 10**6, "millones": 10**6, "billón": 10**12, "billones": 10**12,
}  # fmt: skip
"""`mil millones` is read as a thousand times a million."""
SIGNS = {"€": "euros", "$": "dólares", "&": "y", "°": "grados"}
"""Signs, with the words for them."""

"""Sentences and the same in other words, written for the worlds of overlap."""

from typing import Final

PARAPHRASES: Final[tuple[tuple[str, str], ...]] = (
    (
        "The council voted on Tuesday to close the old pool because repairs cost too much.",
        "On Tuesday councillors decided to shut the ageing pool, as fixing it was too expensive.",
    ),
    (
        "Heavy rain flooded the railway line, and all trains to the coast were cancelled.",
        "All coastal train services were called off after downpours put the tracks under water.",
    ),
    (
        "The bakery on Mill Street has been run by the same family for 90 years.",
        "One family has owned the Mill Street bakery for 90 years.",
    ),
    (
        "Researchers found that bees remember the colour of flowers for several days.",
        "According to scientists, a bee can recall what colour a flower was for days.",
    ),
    (
        "The airline will stop flying to the island next spring for lack of passengers.",
        "Because too few people book seats, the carrier ends its island flights in spring.",
    ),
    (
        "A painting that hung in a farmhouse kitchen was sold for 2 million dollars.",
        "Somebody paid 2 million dollars for a picture that used to decorate a farm's kitchen.",
    ),
    (
        "The goalkeeper saved two penalties and the home team won the final.",
        "Thanks to two penalty saves by their goalkeeper, the hosts won the final.",
    ),
    (
        "Doctors advise older people to have a flu vaccination before winter begins.",
        "The elderly should get vaccinated against influenza ahead of winter, physicians say.",
    ),
    (
        "The bridge was closed to lorries after engineers discovered cracks in a pillar.",
        "Engineers found a cracked pillar, so trucks may no longer use the bridge.",
    ),
    (
        "The mayor resigned over claims that she had hired her brother.",
        "Accused of giving her brother a job, the mayor stepped down.",
    ),
    (
        "Unemployment fell to its lowest level in 12 years, the government announced.",
        "The government said that joblessness is the lowest it has been for 12 years.",
    ),
    (
        "The company recalled its electric kettles because the handle may come off.",
        "Electric kettles are being recalled by their maker since handles can break off.",
    ),
    (
        "Farmers fear a poor harvest after the driest summer in decades.",
        "After a summer drier than any in decades, farmers expect to harvest little.",
    ),
    (
        "The library lends out musical instruments as well as books.",
        "Besides books, people can borrow musical instruments from the library.",
    ),
    (
        "Police arrested two men who had stolen copper cable from a building site.",
        "Two men were taken into custody for the theft of copper cables at a construction site.",
    ),
    (
        "The film won 5 prizes at the festival, among them that for the best director.",
        "Best director was one of 5 awards that the movie took home from the festival.",
    ),
    (
        "A storm tore the roof off the school's sports hall during the night.",
        "Overnight, strong winds ripped away the roof of the school gymnasium.",
    ),
    (
        "Astronomers have discovered a planet that circles two stars.",
        "A planet orbiting a pair of stars has been found by astronomers.",
    ),
    (
        "The museum returned a bronze statue to the country from which it was stolen.",
        "A stolen bronze sculpture was given back by the museum to its home country.",
    ),
    (
        "Rents in the capital rose twice as fast as wages last year.",
        "Last year, the capital's rents went up at double the pace of pay.",
    ),
    (
        "The chess champion lost her title to a student of 17.",
        "A student aged 17 took the title from the reigning chess champion.",
    ),
    (
        "Volunteers planted 3,000 trees on the hill that burned last summer.",
        "On the hillside that caught fire last summer, volunteers put in 3,000 trees.",
    ),
    (
        "The bank apologised to customers who could not withdraw money over the weekend.",
        "Clients who were unable to take out cash at the weekend got an apology from the bank.",
    ),
    (
        "A new vaccine against malaria protects four children in five, a trial shows.",
        "In a trial, a novel malaria vaccine prevented the disease in four out of five children.",
    ),
    (
        "The ferry ran aground in thick fog, but nobody was hurt.",
        "No one was injured when the ferry got stuck on a sandbank in dense fog.",
    ),
    (
        "Teachers went on strike for a second day to demand smaller classes.",
        "For a second day teachers stopped work, calling for fewer pupils in each class.",
    ),
)
"""Each with the same facts, names and numbers."""

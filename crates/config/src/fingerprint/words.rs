//! The list of words in which a fingerprint is read aloud.

/// A word for every byte: common English nouns of 5 to 9 letters. No two share their first four letters, and
/// at least three letters have to change to turn one into another. So a word that was misheard or misspelt is
/// usually not in the list, and not another word of it.
#[rustfmt::skip]
pub(super) const WORDS: [&str; 256] = [
    "acorn", "admiral", "airport", "album", "alligator", "almond", "alphabet", "amber",
    "anchor", "antelope", "apple", "apricot", "aquarium", "arctic", "armchair", "arrow",
    "artist", "asphalt", "atlas", "august", "avocado", "bakery", "ballet", "bamboo",
    "banana", "beaver", "belfry", "bicycle", "biscuit", "bishop", "blanket", "blossom",
    "bonfire", "border", "bottle", "bracelet", "breakfast", "bronze", "bubble", "bucket",
    "buffalo", "bulldog", "bungalow", "butcher", "cabbage", "cactus", "calendar", "camel",
    "canyon", "captain", "caravan", "cardinal", "cashew", "cathedral", "cavern", "cement",
    "cereal", "champion", "cheese", "chimney", "chocolate", "cinema", "circus", "clarinet",
    "clipper", "clover", "cobbler", "coconut", "compass", "concert", "corridor", "cottage",
    "coyote", "cradle", "cricket", "crocodile", "crystal", "cucumber", "cupboard", "cushion",
    "cyclone", "daffodil", "daisy", "dancer", "december", "delta", "dentist", "desert",
    "diamond", "dinosaur", "doctor", "dolphin", "domino", "donkey", "dragon", "drummer",
    "dungeon", "eagle", "eclipse", "editor", "eggplant", "elbow", "elevator", "embassy",
    "emerald", "engine", "equator", "evening", "fabric", "factory", "falcon", "farmer",
    "feather", "ferry", "festival", "fiddle", "finger", "firefly", "flamingo", "fluid",
    "football", "forest", "fossil", "fountain", "fragment", "friday", "furnace", "galaxy",
    "garden", "gazelle", "general", "geyser", "giant", "giraffe", "glacier", "goblet",
    "goldfish", "gondola", "gorilla", "granite", "guitar", "gymnast", "hamster", "harvest",
    "headline", "hedgehog", "helmet", "herring", "hexagon", "highway", "holiday", "horizon",
    "hospital", "hurricane", "iceberg", "igloo", "infant", "island", "ivory", "jaguar",
    "jasmine", "journal", "judge", "kangaroo", "kayak", "kennel", "kingdom", "lantern",
    "laundry", "leopard", "library", "mahogany", "meadow", "midnight", "mitten", "monsoon",
    "muffin", "museum", "mushroom", "narwhal", "necklace", "nephew", "november", "nutmeg",
    "octopus", "olive", "omelette", "opera", "orchard", "oregano", "ostrich", "pancake",
    "pavement", "peacock", "pelican", "pilgrim", "pineapple", "pistachio", "potato", "prairie",
    "pretzel", "pudding", "pumpkin", "puppet", "puzzle", "pyramid", "quartz", "railway",
    "reindeer", "ribbon", "saffron", "sailor", "sandal", "sapphire", "satellite", "saxophone",
    "scarecrow", "scissors", "sculptor", "seagull", "september", "sheriff", "shovel", "skeleton",
    "sneaker", "spinach", "squirrel", "stadium", "stirrup", "thimble", "thunder", "torch",
    "treasure", "triangle", "tuesday", "tulip", "turquoise", "twilight", "typhoon", "ukulele",
    "umbrella", "uniform", "vanilla", "viaduct", "village", "violin", "vulture", "wardrobe",
    "wednesday", "wizard", "wombat", "woodland", "workshop", "yacht", "zeppelin", "zigzag",
];

#[cfg(test)]
mod tests {
    use super::WORDS;

    /// Letters that have to be changed, added or left out.
    fn distance(one: &str, other: &str) -> usize {
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in one.bytes().enumerate() {
            let mut above = row[0];
            row[0] = i + 1;
            for (j, b) in other.bytes().enumerate() {
                let replaced = above + usize::from(a != b);
                above = row[j + 1];
                row[j + 1] = replaced.min(above + 1).min(row[j] + 1);
            }
        }
        row[other.len()]
    }

    #[test]
    fn no_word_is_taken_for_another() {
        for (i, word) in WORDS.iter().enumerate() {
            assert!((5..=9).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
            for other in &WORDS[..i] {
                assert!(distance(word, other) >= 3, "{word} {other}");
                assert_ne!(word[..4], other[..4], "{word} {other}");
            }
        }
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

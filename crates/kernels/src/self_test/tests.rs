//! The self-test passes with every form, and notices every wrong answer.

use std::path::Path;

use super::*;

/// Whether each kernel gives its answer in these forms; what it gives instead.
fn wrong_answers(forms: Forms) -> Vec<String> {
    let wrong = answers::ALL.iter().filter(|known| !known.answer.is(&(known.compute)(forms)));
    wrong.map(|k| format!("{}: {:#x}", k.kernel, fingerprint(&(k.compute)(forms)))).collect()
}

#[test]
fn every_form_that_this_processor_has_gives_the_known_answers() {
    for bytes in Isa::available() {
        for aes in AesIsa::available() {
            for clmul in ClmulIsa::available() {
                let forms = Forms { bytes, aes, clmul };
                assert_eq!(wrong_answers(forms), Vec::<String>::new(), "{forms:?}");
            }
        }
    }
    run().unwrap();
}

/// What a processor computes whose AES in registers, or whose portable AES, is wrong in one bit. It runs the
/// portable form alone, so every processor can compute it.
#[cfg(target_arch = "x86_64")]
fn broken<const PORTABLE: bool>(forms: Forms) -> Vec<u8> {
    let mut bytes = (stream().compute)(Forms::PORTABLE);
    if (forms == Forms::PORTABLE) == PORTABLE {
        *bytes.last_mut().expect("an answer") ^= 0x80;
    }
    bytes
}

#[cfg(target_arch = "x86_64")]
fn stream() -> &'static KnownAnswer {
    answers::ALL.iter().find(|known| known.kernel == "aes_prg").expect("its known answer")
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_wrong_kernel_is_named_with_its_form() {
    let chosen = Forms { aes: AesIsa::AesNi, ..Forms::PORTABLE };
    let check = |compute| {
        let Answer::Fingerprint(answer) = stream().answer else { panic!("a kernel with a fingerprint") };
        check(&[KnownAnswer { kernel: "aes_prg", compute, answer: Answer::Fingerprint(answer) }], chosen)
    };
    assert_eq!(check(|_| (stream().compute)(Forms::PORTABLE)), Ok(()));
    let error = check(broken::<false>).unwrap_err();
    assert_eq!((error.kernel, error.portable), ("aes_prg", false));
    let text = error.to_string();
    assert!(
        text.contains("the form for this processor of the kernel \"aes_prg\" computes a wrong"),
        "{text}"
    );
    let error = check(broken::<true>).unwrap_err();
    assert!(error.portable && error.to_string().contains("the portable form"), "{error}");
}

#[test]
fn every_known_answer_notices_another_bit() {
    for known in answers::ALL {
        let mut bytes = (known.compute)(Forms::PORTABLE);
        assert!(bytes.iter().any(|byte| *byte != 0), "{}", known.kernel);
        for at in [0, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert!(!known.answer.is(&bytes), "{}", known.kernel);
            bytes[at] ^= 1;
        }
    }
}

/// Modules that choose a form.
fn modules_that_choose(folder: &Path, name: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = if name.is_empty() { stem.to_owned() } else { format!("{name}::{stem}") };
        if path.is_dir() {
            modules_that_choose(&path, &module, found);
        } else if !["isa", "self_test"].contains(&stem)
            && !module.contains("tests")
            && !name.starts_with("self_test")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.contains("Isa::best()") {
                found.push(module);
            }
        }
    }
}

#[test]
fn every_module_that_chooses_a_form_has_a_known_answer() {
    let mut found = Vec::new();
    modules_that_choose(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    assert!(found.len() > 15, "{found:?}");
    for module in found {
        let is_of = |known: &&KnownAnswer| known.kernel.split(": ").next() == Some(&module);
        assert!(answers::ALL.iter().any(|known| is_of(&known)), "{module} has no self-test");
    }
}

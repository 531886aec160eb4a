//! Sessions, and their functions with the types of Rust.

use std::ptr;

use cryptoki_sys::*;

use super::*;

/// A session of a token that no other test uses, where the user is logged in, and may write.
pub fn session() -> Session<'static> {
    logged_in_at(&shared().module, slot())
}

/// The same with the first token of a module.
pub fn logged_in(module: &Module) -> Session<'_> {
    logged_in_at(module, 0)
}

fn logged_in_at(module: &Module, slot: CK_SLOT_ID) -> Session<'_> {
    let session = Session::open(module, slot);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    session
}

/// A session of a module.
#[derive(Clone, Copy)]
pub struct Session<'m> {
    pub module: &'m Module,
    pub handle: CK_SESSION_HANDLE,
}

macro_rules! call {
    ($module:expr, $function:ident($($argument:expr),* $(,)?)) => {
        unsafe { ($module.list.$function.expect("listed"))($($argument),*) }
    };
}
pub(crate) use call;

/// Which function of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Encrypt,
    Decrypt,
    Sign,
}

impl<'m> Session<'m> {
    pub fn open(module: &'m Module, slot: CK_SLOT_ID) -> Session<'m> {
        Session::open_with(module, slot, CKF_SERIAL_SESSION | CKF_RW_SESSION).expect("opened")
    }

    pub fn open_with(module: &'m Module, slot: CK_SLOT_ID, flags: CK_FLAGS) -> Result<Session<'m>, CK_RV> {
        let mut handle = 0;
        match call!(module, C_OpenSession(slot, flags, ptr::null_mut(), None, &mut handle)) {
            CKR_OK => Ok(Session { module, handle }),
            rv => Err(rv),
        }
    }

    pub fn close(&self) -> CK_RV {
        call!(self.module, C_CloseSession(self.handle))
    }

    pub fn login(&self, who: CK_USER_TYPE, pin: &[u8]) -> CK_RV {
        call!(self.module, C_Login(self.handle, who, pin.as_ptr().cast_mut(), pin.len() as CK_ULONG))
    }

    pub fn state(&self) -> CK_STATE {
        let mut info = CK_SESSION_INFO::default();
        assert_eq!(call!(self.module, C_GetSessionInfo(self.handle, &mut info)), CKR_OK);
        info.state
    }

    pub fn generate(
        &self,
        kind: CK_MECHANISM_TYPE,
        mut attributes: Vec<Attribute>,
    ) -> Result<CK_OBJECT_HANDLE, CK_RV> {
        let (mut template, mut handle) = (template(&mut attributes), 0);
        let (mut mechanism, count) = (plain(kind).raw(), template.len() as CK_ULONG);
        let to = &mut handle;
        match call!(self.module, C_GenerateKey(self.handle, &mut mechanism, template.as_mut_ptr(), count, to))
        {
            CKR_OK => Ok(handle),
            rv => Err(rv),
        }
    }

    /// Imports a token key with these attributes besides the necessary ones.
    pub fn import(
        &self,
        label: &str,
        kind: CK_KEY_TYPE,
        key: &[u8],
        more: Vec<Attribute>,
    ) -> Result<CK_OBJECT_HANDLE, CK_RV> {
        let mut attributes = vec![
            number(CKA_CLASS, CKO_SECRET_KEY),
            number(CKA_KEY_TYPE, kind),
            flag(CKA_TOKEN, true),
            text(CKA_LABEL, label),
            (CKA_VALUE, key.to_vec()),
        ];
        attributes.extend(more);
        let (mut template, mut handle) = (template(&mut attributes), 0);
        let count = template.len() as CK_ULONG;
        match call!(self.module, C_CreateObject(self.handle, template.as_mut_ptr(), count, &mut handle)) {
            CKR_OK => Ok(handle),
            rv => Err(rv),
        }
    }

    pub fn find(&self, mut attributes: Vec<Attribute>) -> Vec<CK_OBJECT_HANDLE> {
        let mut template = template(&mut attributes);
        let count = template.len() as CK_ULONG;
        assert_eq!(call!(self.module, C_FindObjectsInit(self.handle, template.as_mut_ptr(), count)), CKR_OK);
        let (mut all, mut page, mut got) = (Vec::new(), [0; 3], 0);
        loop {
            assert_eq!(
                call!(self.module, C_FindObjects(self.handle, page.as_mut_ptr(), 3, &mut got)),
                CKR_OK
            );
            all.extend(&page[..got as usize]);
            if got == 0 {
                break;
            }
        }
        assert_eq!(call!(self.module, C_FindObjectsFinal(self.handle)), CKR_OK);
        all
    }

    pub fn attribute(&self, object: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> Result<Vec<u8>, CK_RV> {
        let mut attribute = CK_ATTRIBUTE { type_: kind, pValue: ptr::null_mut(), ulValueLen: 0 };
        match call!(self.module, C_GetAttributeValue(self.handle, object, &mut attribute, 1)) {
            CKR_OK => {}
            rv => {
                let is_of_attribute = rv != CKR_OBJECT_HANDLE_INVALID;
                assert_eq!(attribute.ulValueLen == CK_UNAVAILABLE_INFORMATION, is_of_attribute);
                return Err(rv);
            }
        }
        let mut value = vec![0; attribute.ulValueLen as usize];
        attribute.pValue = value.as_mut_ptr().cast();
        assert_eq!(call!(self.module, C_GetAttributeValue(self.handle, object, &mut attribute, 1)), CKR_OK);
        Ok(value)
    }

    pub fn is(&self, object: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> bool {
        self.attribute(object, kind).expect("every key has it") == [1]
    }

    pub fn set(&self, object: CK_OBJECT_HANDLE, mut attributes: Vec<Attribute>) -> CK_RV {
        let mut template = template(&mut attributes);
        let count = template.len() as CK_ULONG;
        call!(self.module, C_SetAttributeValue(self.handle, object, template.as_mut_ptr(), count))
    }

    pub fn destroy(&self, object: CK_OBJECT_HANDLE) -> CK_RV {
        call!(self.module, C_DestroyObject(self.handle, object))
    }

    pub fn init<P>(&self, does: Does, mechanism: &mut Mechanism<P>, key: CK_OBJECT_HANDLE) -> CK_RV {
        let how = &mut mechanism.raw();
        match does {
            Does::Encrypt => call!(self.module, C_EncryptInit(self.handle, how, key)),
            Does::Decrypt => call!(self.module, C_DecryptInit(self.handle, how, key)),
            Does::Sign => call!(self.module, C_SignInit(self.handle, how, key)),
        }
    }

    /// One call with a buffer of so many bytes; `None` for no buffer. The length that was told, and the
    /// bytes.
    pub fn whole(&self, does: Does, data: &[u8], room: Option<usize>) -> (CK_RV, usize, Vec<u8>) {
        let (mut out, mut len) = (vec![0xee; room.unwrap_or(0)], room.unwrap_or(0) as CK_ULONG);
        let to = if room.is_some() { out.as_mut_ptr() } else { ptr::null_mut() };
        let (from, count) = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
        let rv = match does {
            Does::Encrypt => call!(self.module, C_Encrypt(self.handle, from, count, to, &mut len)),
            Does::Decrypt => call!(self.module, C_Decrypt(self.handle, from, count, to, &mut len)),
            Does::Sign => call!(self.module, C_Sign(self.handle, from, count, to, &mut len)),
        };
        if rv == CKR_OK {
            out.truncate(len as usize);
        }
        (rv, len as usize, out)
    }

    /// In one part.
    pub fn run<P>(
        &self,
        does: Does,
        mechanism: &mut Mechanism<P>,
        key: CK_OBJECT_HANDLE,
        data: &[u8],
    ) -> Result<Vec<u8>, CK_RV> {
        match self.init(does, mechanism, key) {
            CKR_OK => {}
            rv => return Err(rv),
        }
        match self.whole(does, data, Some(data.len() + 64)) {
            (CKR_OK, _, out) => Ok(out),
            (rv, ..) => Err(rv),
        }
    }

    /// In parts of so many bytes.
    pub fn in_parts<P>(
        &self,
        does: Does,
        mechanism: &mut Mechanism<P>,
        key: CK_OBJECT_HANDLE,
        data: &[u8],
        part: usize,
    ) -> Result<Vec<u8>, CK_RV> {
        assert_eq!(self.init(does, mechanism, key), CKR_OK);
        let (mut all, mut out) = (Vec::new(), vec![0; data.len() + 64]);
        for piece in data.chunks(part) {
            let mut len = out.len() as CK_ULONG;
            let (from, count, to) = (piece.as_ptr().cast_mut(), piece.len() as CK_ULONG, out.as_mut_ptr());
            let rv = match does {
                Does::Encrypt => call!(self.module, C_EncryptUpdate(self.handle, from, count, to, &mut len)),
                Does::Decrypt => call!(self.module, C_DecryptUpdate(self.handle, from, count, to, &mut len)),
                Does::Sign => {
                    len = 0;
                    call!(self.module, C_SignUpdate(self.handle, from, count))
                }
            };
            if rv != CKR_OK {
                return Err(rv);
            }
            all.extend(&out[..len as usize]);
        }
        let mut len = out.len() as CK_ULONG;
        let to = out.as_mut_ptr();
        let rv = match does {
            Does::Encrypt => call!(self.module, C_EncryptFinal(self.handle, to, &mut len)),
            Does::Decrypt => call!(self.module, C_DecryptFinal(self.handle, to, &mut len)),
            Does::Sign => call!(self.module, C_SignFinal(self.handle, to, &mut len)),
        };
        if rv != CKR_OK {
            return Err(rv);
        }
        all.extend(&out[..len as usize]);
        Ok(all)
    }
}

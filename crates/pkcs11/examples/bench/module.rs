//! The functions of the library that are measured.

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

use cryptoki_sys::*;
use libloading::{Library, Symbol};

use crate::Outcome;

/// The library, initialized.
pub(crate) struct Module {
    list: &'static CK_FUNCTION_LIST,
    _library: Library,
}

/// A session of it.
#[derive(Clone, Copy)]
pub(crate) struct Session<'m> {
    module: &'m Module,
    handle: CK_SESSION_HANDLE,
}

/// A mechanism, with its parameter.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Ecb,
    /// From this counter block on, all of which counts.
    Ctr([u8; 16]),
    /// Under this nonce, with tags of 128 bits.
    Gcm([u8; 12]),
}

macro_rules! call {
    ($module:expr, $function:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: all pointers are to values that live until the call returns.
        match unsafe { ($module.list.$function.ok_or(stringify!($function))?)($($argument),*) } {
            CKR_OK => Ok(()),
            rv => Err(format!("{} gave {rv:#x}; the log of POLYCLAVE_PKCS11_LOG says why", stringify!($function))),
        }
    };
}

impl Module {
    pub(crate) fn load(path: &Path) -> Outcome<Module> {
        // SAFETY: the library of this project, or one that the caller names; its functions are as the
        // standard says.
        let (library, list) = unsafe {
            let library = Library::new(path).map_err(|e| format!("{}: {e}", path.display()))?;
            let mut list: *mut CK_FUNCTION_LIST = ptr::null_mut();
            let get: Symbol<'_, unsafe extern "C" fn(*mut *mut CK_FUNCTION_LIST) -> CK_RV> =
                library.get(b"C_GetFunctionList\0")?;
            if get(&mut list) != CKR_OK || list.is_null() {
                return Err("the library has no list of functions".into());
            }
            (library, &*list)
        };
        let module = Module { list, _library: library };
        module.initialize()?;
        Ok(module)
    }

    pub(crate) fn initialize(&self) -> Outcome<()> {
        let mut arguments =
            CK_C_INITIALIZE_ARGS { flags: CKF_OS_LOCKING_OK, ..CK_C_INITIALIZE_ARGS::default() };
        Ok(call!(self, C_Initialize(ptr::from_mut(&mut arguments).cast()))?)
    }

    pub(crate) fn finalize(&self) -> Outcome<()> {
        Ok(call!(self, C_Finalize(ptr::null_mut()))?)
    }

    pub(crate) fn open(&self) -> Outcome<Session<'_>> {
        let (mut handle, flags) = (0, CKF_SERIAL_SESSION | CKF_RW_SESSION);
        call!(self, C_OpenSession(0, flags, ptr::null_mut(), None, &mut handle))?;
        Ok(Session { module: self, handle })
    }

    /// A session in which the user is logged in, for all others.
    pub(crate) fn log_in(&self, pin: &str) -> Outcome<Session<'_>> {
        let session = self.open()?;
        let (at, len) = (pin.as_ptr().cast_mut(), pin.len() as CK_ULONG);
        call!(self, C_Login(session.handle, CKU_USER, at, len))?;
        Ok(session)
    }
}

impl Session<'_> {
    pub(crate) fn close(self) -> Outcome<()> {
        Ok(call!(self.module, C_CloseSession(self.handle))?)
    }

    /// A key for all mechanisms that nodes keep (`is_kept`), or of this session.
    pub(crate) fn generate(self, label: &str, is_kept: bool) -> Outcome<CK_OBJECT_HANDLE> {
        let (mut len, mut kept): (CK_ULONG, CK_BBOOL) = (16, is_kept.into());
        let mut template = [
            attribute(CKA_VALUE_LEN, ptr::from_mut(&mut len).cast(), size_of::<CK_ULONG>()),
            attribute(CKA_TOKEN, ptr::from_mut(&mut kept).cast(), 1),
            attribute(CKA_LABEL, label.as_ptr().cast_mut().cast(), label.len()),
        ];
        let mut how = CK_MECHANISM { mechanism: CKM_AES_KEY_GEN, ..CK_MECHANISM::default() };
        let (at, count, mut key) = (template.as_mut_ptr(), template.len() as CK_ULONG, 0);
        call!(self.module, C_GenerateKey(self.handle, &mut how, at, count, &mut key))?;
        Ok(key)
    }

    pub(crate) fn destroy(self, key: CK_OBJECT_HANDLE) -> Outcome<()> {
        Ok(call!(self.module, C_DestroyObject(self.handle, key))?)
    }

    /// The keys with a label, or all of them.
    pub(crate) fn find(self, label: Option<&str>) -> Outcome<Vec<CK_OBJECT_HANDLE>> {
        let mut template =
            label.map(|label| attribute(CKA_LABEL, label.as_ptr().cast_mut().cast(), label.len()));
        let (at, count) = match &mut template {
            Some(template) => (ptr::from_mut(template), 1),
            None => (ptr::null_mut(), 0),
        };
        call!(self.module, C_FindObjectsInit(self.handle, at, count))?;
        let (mut found, mut page, mut got) = (Vec::new(), [0; 100], 0);
        loop {
            call!(self.module, C_FindObjects(self.handle, page.as_mut_ptr(), 100, &mut got))?;
            if got == 0 {
                break;
            }
            found.extend_from_slice(&page[..got as usize]);
        }
        call!(self.module, C_FindObjectsFinal(self.handle))?;
        Ok(found)
    }

    /// The label and the id of a key, as programs ask for them.
    pub(crate) fn attributes(self, key: CK_OBJECT_HANDLE) -> Outcome<()> {
        let (mut label, mut id) = ([0_u8; 256], [0_u8; 256]);
        let mut template = [
            attribute(CKA_LABEL, label.as_mut_ptr().cast(), label.len()),
            attribute(CKA_ID, id.as_mut_ptr().cast(), id.len()),
        ];
        let (at, count) = (template.as_mut_ptr(), template.len() as CK_ULONG);
        Ok(call!(self.module, C_GetAttributeValue(self.handle, key, at, count))?)
    }

    pub(crate) fn encrypt(self, how: How, key: CK_OBJECT_HANDLE, data: &[u8]) -> Outcome<Vec<u8>> {
        let (mut how, mut gcm) = (how, CK_GCM_PARAMS::default());
        let mut counter = CK_AES_CTR_PARAMS { ulCounterBits: 128, cb: [0; 16] };
        let (mechanism, at, len): (_, *mut c_void, _) = match &mut how {
            How::Ecb => (CKM_AES_ECB, ptr::null_mut(), 0),
            How::Ctr(block) => {
                counter.cb = *block;
                (CKM_AES_CTR, ptr::from_mut(&mut counter).cast(), size_of::<CK_AES_CTR_PARAMS>())
            }
            How::Gcm(nonce) => {
                (gcm.pIv, gcm.ulIvLen, gcm.ulIvBits, gcm.ulTagBits) = (nonce.as_mut_ptr(), 12, 96, 128);
                (CKM_AES_GCM, ptr::from_mut(&mut gcm).cast(), size_of::<CK_GCM_PARAMS>())
            }
        };
        let mut mechanism = CK_MECHANISM { mechanism, pParameter: at, ulParameterLen: len as CK_ULONG };
        call!(self.module, C_EncryptInit(self.handle, &mut mechanism, key))?;
        let mut out = vec![0; data.len() + 16];
        let (from, count, mut len) =
            (data.as_ptr().cast_mut(), data.len() as CK_ULONG, out.len() as CK_ULONG);
        call!(self.module, C_Encrypt(self.handle, from, count, out.as_mut_ptr(), &mut len))?;
        out.truncate(len as usize);
        Ok(out)
    }
}

fn attribute(kind: CK_ATTRIBUTE_TYPE, at: *mut c_void, len: usize) -> CK_ATTRIBUTE {
    CK_ATTRIBUTE { type_: kind, pValue: at, ulValueLen: len as CK_ULONG }
}

//! The tokens, access keys and clients of KMIP that are in force, and who may log in for one. The file is
//! looked at with every request, so that a token that was revoked stops at once.

mod given;
mod shares;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use parking_lot::{Mutex, RwLock};
use polyclave_client::Client;
use polyclave_config::{
    GatewayAccessKey, GatewayGrant, GatewayKmip, GatewayKmipClient, GatewayLogin, GatewayLoginRole,
    GatewaySettings, GatewayToken,
};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::Result;
use crate::login::{Allowance, Line, Login, Refused};
use crate::make_token::random_token;
use crate::mark::Mark;
use crate::memory::TURNS;
use crate::moment::Moment;
use crate::nodes::Asker;
pub(crate) use given::Session;
use given::{Given, Lives};

/// After which time a file that was wrong is read again though it has not changed.
const AGAIN: Duration = Duration::from_secs(5);

/// A token of the file, or those of all who have logged in as one role; and the client as which the gateway
/// asks the nodes for them.
pub(crate) struct Token {
    pub(crate) entry: GatewayGrant,
    pub(crate) asker: Asker,
    /// Its long requests take turns for its share of the memory.
    pub(crate) turns: Arc<Semaphore>,
}

/// An access key, and the client as which the gateway asks the nodes for its holder.
pub(crate) struct AccessKey {
    pub(crate) entry: GatewayAccessKey,
    pub(crate) secret: Zeroizing<String>,
    pub(crate) asker: Asker,
}

/// A client of KMIP, and the client as which the gateway asks the nodes for it.
pub(crate) struct KmipClient {
    /// The name in its certificate.
    pub(crate) certificate_name: String,
    pub(crate) entry: GatewayGrant,
    pub(crate) asker: Asker,
}

/// The token of a request. If there are several, nobody can say which one is meant.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<&str> {
    let mut own = headers.get_all("x-vault-token").iter();
    match (own.next(), own.next()) {
        (Some(_), Some(_)) => return None,
        (Some(own), None) if !own.is_empty() => return own.to_str().ok(),
        _ => {}
    }
    let mut all = headers
        .get_all(AUTHORIZATION)
        .iter()
        .filter_map(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    all.next().filter(|text| !text.is_empty() && all.next().is_none())
}

/// The tokens by their hashes. An attacker that measures how long a look-up takes learns something of the
/// hash of its own input, and cannot choose tokens by their hashes.
type ByHash = HashMap<[u8; 32], Arc<Token>>;

/// Who may ask, as the file says.
struct InForce {
    tokens: ByHash,
    /// By their ids, which are no secrets.
    access_keys: HashMap<String, Arc<AccessKey>>,
    /// By the addresses where KMIP is served to them.
    kmip: HashMap<String, Vec<Arc<KmipClient>>>,
    /// By their paths.
    logins: HashMap<String, Arc<Login>>,
    /// By their names, which no two logins have in common.
    roles: HashMap<String, Role>,
}

struct Role {
    token: Arc<Token>,
    /// Whom it lets in.
    admission: GatewayLogin,
    lives: Lives,
}

/// See the [module](self).
pub(crate) struct Tokens {
    file: PathBuf,
    client: Arc<Client>,
    in_force: RwLock<Arc<InForce>>,
    /// The file that was read last, whether or not it was right.
    read: Mutex<Read>,
    /// The tokens of those who have logged in.
    given: Given,
    /// How often a subject logs in as a role.
    logins: Allowance<(String, String)>,
}

struct Read {
    mark: Option<Mark>,
    settings: GatewaySettings,
    /// When the file was wrong, and how.
    wrong: Option<(Instant, String)>,
}

/// A token that a login has given.
pub(crate) struct LoggedIn {
    pub(crate) text: Zeroizing<String>,
    pub(crate) hash: [u8; 32],
    pub(crate) session: Session,
}

impl Tokens {
    /// Reads the file.
    pub(crate) fn load(file: &Path, client: Arc<Client>) -> Result<Tokens> {
        // Before it is read: a change meanwhile is noticed with the next request.
        let mark = Mark::of(file);
        let settings = GatewaySettings::load(file)?;
        let in_force = RwLock::new(Arc::new(in_force(&client, &settings, None)?));
        let given = Given::new(settings.limits.tokens_of_logins);
        let read = Mutex::new(Read { mark, settings, wrong: None });
        Ok(Tokens { file: file.into(), client, in_force, read, given, logins: Allowance::of_logins() })
    }

    /// The token with a hash, as the file has it now.
    pub(crate) fn find(&self, hash: &[u8; 32]) -> Option<Arc<Token>> {
        self.look_again();
        let in_force = self.in_force.read();
        in_force.tokens.get(hash).cloned().or_else(|| {
            let role = self.given.role_of(hash, Moment::now())?;
            in_force.roles.get(&*role).map(|role| role.token.clone())
        })
    }

    /// The login under a path, as the file has it now.
    pub(crate) fn login(&self, path: &str) -> Option<Arc<Login>> {
        self.look_again();
        self.in_force.read().logins.get(path).cloned()
    }

    /// Gives a token to who shows a good one of an issuer.
    pub(crate) async fn log_in(
        &self,
        (login, line): (&Login, Line<'_>),
        role: &str,
        token: &str,
    ) -> std::result::Result<LoggedIn, Refused> {
        let settings = login.settings.role(role).ok_or(Refused::Changed)?;
        let verified = login.verify(settings, token, line).await?;
        let text = random_token().map_err(|e| Refused::System(e.to_string()))?;
        let hash = GatewayToken::hash_of(&text);
        // The file cannot take another role's place meanwhile.
        let in_force = self.in_force.read();
        let admission = login.settings.admission(settings);
        let present = in_force.roles.get(role).filter(|present| present.admission == admission);
        let lives = present.ok_or(Refused::Changed)?.lives;
        let now = Instant::now();
        let holder = (role.to_owned(), verified.identity.subject.clone());
        if let Some(wait) = self.logins.wait(&holder, now) {
            return Err(Refused::Hasty(wait.as_secs() + 1));
        }
        // Nothing refuses it after it was spent.
        let identity = login.spend(verified)?;
        self.logins.note(&holder, now);
        let given = Moment::now();
        let session = Session::begin((&login.settings.path, role), identity, lives, given);
        self.given.add(hash, session.clone(), given);
        Ok(LoggedIn { text, hash, session })
    }

    /// What a login has given, if a token is from one.
    pub(crate) fn session(&self, hash: &[u8; 32]) -> Option<Session> {
        self.given.find(hash, Moment::now())
    }

    /// Lets a token of a login live on, for a time or for as long as a new one.
    pub(crate) fn renew(&self, hash: &[u8; 32], wanted: Option<Duration>) -> Option<Session> {
        self.given.renew(hash, wanted, Moment::now())
    }

    /// Ends a token of a login. False if it is from none.
    pub(crate) fn end(&self, hash: &[u8; 32]) -> bool {
        self.given.end(hash)
    }

    /// The access key with an id, as the file has it now.
    pub(crate) fn find_access_key(&self, id: &str) -> Option<Arc<AccessKey>> {
        self.look_again();
        self.in_force.read().access_keys.get(id).cloned()
    }

    /// The client of KMIP at an address that a certificate means, as the file has it now. It is nobody if the
    /// certificate has the names of several: which rights were meant would be unclear.
    pub(crate) fn find_kmip_client(
        &self,
        address: &str,
        has_name: impl Fn(&str) -> bool,
    ) -> Option<Arc<KmipClient>> {
        self.look_again();
        let in_force = self.in_force.read();
        let mut named =
            in_force.kmip.get(address)?.iter().filter(|client| has_name(&client.certificate_name));
        let first = named.next()?;
        if named.next().is_none() { Some(first.clone()) } else { None }
    }

    /// Takes what a file says. If it says something else of whom a role lets in, the tokens of that role end.
    /// If it says shorter lives, they hold for tokens that are there, too.
    fn take(&self, in_force: InForce) {
        let before = std::mem::replace(&mut *self.in_force.write(), Arc::new(in_force));
        let present = self.in_force.read().clone();
        for (name, role) in &before.roles {
            match present.roles.get(name).filter(|present| present.admission == role.admission) {
                None => self.given.end_all_of(name),
                Some(present) if present.lives != role.lives => {
                    self.given.shorten(name, present.lives, Moment::now());
                }
                Some(_) => {}
            }
        }
    }

    /// Takes the tokens of the file, if it has changed. Those of a file with an error are not taken: the
    /// tokens from before stay in force. It is tried again after a while, since the cause may be another
    /// file, or that no file could be opened for a moment.
    fn look_again(&self) {
        let mark = Mark::of(&self.file);
        let mut read = self.read.lock();
        let is_due = read.wrong.as_ref().is_some_and(|(at, _)| at.elapsed() >= AGAIN);
        if mark == read.mark && !is_due {
            return;
        }
        read.mark = mark;
        let taken = GatewaySettings::load(&self.file).map_err(crate::Error::from).and_then(|settings| {
            let before = self.in_force.read().clone();
            let in_force = in_force(&self.client, &settings, Some(&before))?;
            Ok((settings, in_force))
        });
        match taken {
            Ok((settings, in_force)) => {
                let (tokens, access_keys) = (in_force.tokens.len(), in_force.access_keys.len());
                tracing::info!(tokens, access_keys, logins = in_force.logins.len(), "tokens were read");
                let without = |settings: &GatewaySettings| GatewaySettings {
                    tokens: Vec::new(),
                    access_keys: Vec::new(),
                    logins: Vec::new(),
                    kmip: settings.kmip.iter().map(GatewayKmip::without_clients).collect(),
                    ..settings.clone()
                };
                if without(&settings) != without(&read.settings) {
                    tracing::warn!(
                        "of gateway.toml only tokens, access keys, logins and clients of KMIP are taken while the gateway runs; start it again for the rest"
                    );
                }
                read.settings = settings;
                read.wrong = None;
                self.take(in_force);
            }
            Err(e) => {
                let why = e.to_string();
                if read.wrong.as_ref().is_none_or(|(_, told)| *told != why) {
                    tracing::error!(
                        error = why,
                        "the tokens from before stay in force, also those that the file was to revoke"
                    );
                }
                read.wrong = Some((Instant::now(), why));
            }
        }
    }
}

fn in_force(client: &Client, settings: &GatewaySettings, before: Option<&InForce>) -> Result<InForce> {
    let granted = |entry: GatewayGrant| -> Result<Arc<Token>> {
        let asker = Asker::new(client, &entry.name)?;
        let turns = Arc::new(Semaphore::new(TURNS));
        Ok(Arc::new(Token { entry, asker, turns }))
    };
    let token = |entry: &GatewayToken| Ok((entry.hash, granted(entry.grant())?));
    let login = |settings: &GatewayLogin| {
        let before = before.and_then(|before| before.logins.get(&settings.path));
        let login = Login::new(settings, before.map(|before| &**before))?;
        Ok((settings.path.clone(), Arc::new(login)))
    };
    let roles = settings.logins.iter().flat_map(|login| login.roles.iter().map(move |role| (login, role)));
    let role = |(login, role): (&GatewayLogin, &GatewayLoginRole)| {
        let (token, admission) = (granted(role.grant())?, login.admission(role));
        let lives = Lives {
            life: Duration::from_secs(role.life_seconds),
            most: Duration::from_secs(role.most_life_seconds),
        };
        Ok((role.name.clone(), Role { token, admission, lives }))
    };
    let access_key = |entry: &GatewayAccessKey| {
        let (secret, asker) = (entry.read_secret()?, Asker::new(client, &entry.name)?);
        Ok((entry.id.clone(), Arc::new(AccessKey { entry: entry.clone(), secret, asker })))
    };
    let kmip_client = |entry: &GatewayKmipClient| {
        let (certificate_name, asker) = (entry.certificate_name.clone(), Asker::new(client, &entry.name)?);
        Ok(Arc::new(KmipClient { certificate_name, entry: entry.grant(), asker }))
    };
    let kmip = |entry: &GatewayKmip| {
        Ok((entry.address.clone(), entry.clients.iter().map(kmip_client).collect::<Result<_>>()?))
    };
    Ok(InForce {
        kmip: settings.kmip.iter().map(kmip).collect::<Result<_>>()?,
        tokens: settings.tokens.iter().map(token).collect::<Result<_>>()?,
        access_keys: settings.access_keys.iter().map(access_key).collect::<Result<_>>()?,
        logins: settings.logins.iter().map(login).collect::<Result<_>>()?,
        roles: roles.map(role).collect::<Result<_>>()?,
    })
}

'use strict';
// Shows what the server says, once a second. Texts from nodes and users become text nodes only, never HTML.

const $ = (id) => document.getElementById(id);
const DASH = '–';
const HISTORY = 120;
const SILENT_MS = 12000;
const STATES = ['active', 'deactivated', 'compromised'];
// In memory only. In the address after '#' if `polyclave dashboard` printed it: browsers do not send that part.
let token = new URLSearchParams(location.hash.slice(1)).get('token') || '';
let retry_ms = 1000;
let spoken_kind = '';
const rates = [], latencies = [];

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What stands between backticks in a text is a command.
function worded(text) {
  const box = document.createDocumentFragment();
  text.split('`').forEach((part, at) => { if (part) box.append(at % 2 ? make('code', {}, part) : part); });
  return box;
}
const plain = (text) => text.replaceAll('`', '');
function tell(element, text) {
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  element.replaceChildren(worded(text));
}

// A cell is a text, or [text, class], or [text, class, element].
function rows(id, head, data, empty) {
  const body = $(id);
  const labels = [...body.parentElement.querySelectorAll('th')].map((th) => th.textContent);
  const wanted = data.length ? data : [[[empty, 'soft whole']]];
  while (body.rows.length > wanted.length) body.deleteRow(-1);
  wanted.forEach((cells, at) => {
    const row = body.rows[at] || body.insertRow();
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((cell, column) => {
      const [text, style, element] = Array.isArray(cell) ? cell : [cell, ''];
      const td = row.cells[column] || row.insertCell();
      const numeric = head && head[column] === 'n' ? 'n ' : '';
      const name = numeric + (style || '');
      if (td.className !== name) td.className = name;
      td.colSpan = data.length ? 1 : Math.max(1, labels.length);
      td.dataset.label = data.length ? labels[column] || '' : '';
      const shown = String(text);
      if (element) {
        if (td.dataset.shown !== shown) { td.replaceChildren(element); td.dataset.shown = shown; delete td.dataset.text; }
      } else if (td.dataset.text !== shown || td.dataset.shown) {
        delete td.dataset.shown;
        delete td.dataset.text;
        tell(td, shown);
      }
    });
  });
}

const group = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const rate = (value) => value == null ? DASH : value >= 100 ? group(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const within = (ms) => ms == null ? DASH : ms >= 60000 ? '60 s or more' : ms >= 1000 ? ms / 1000 + ' s' : ms + ' ms';
function span(seconds) {
  if (seconds < 0) return span(-seconds) + ' ago';
  if (seconds < 120) return seconds + ' s';
  if (seconds < 7200) return Math.floor(seconds / 60) + ' min';
  if (seconds < 172800) return Math.floor(seconds / 3600) + ' h';
  return Math.floor(seconds / 86400) + ' days';
}
const date = (seconds) => seconds > 8e12 ? 'never' : new Date(seconds * 1000).toISOString().slice(0, 10);
function bar(part, level) {
  const inner = make('i');
  const shown = Math.min(1, Math.max(0, part));
  inner.style.setProperty('--part', shown);
  const percent = Math.round(100 * shown) + ' %';
  return [percent + (level || ''), '', make('span', { class: 'bar ' + (level || ''), role: 'img', 'aria-label': percent, title: percent }, inner)];
}
const keyed = (key) => key.version > 1 ? key.name + '@' + key.version : key.name;

// The last values, at most two minutes. A young series fills the width once it has half a minute; the caption says how long it is.
function line(id, values) {
  const svg = $(id), known = values.filter((value) => value != null);
  const wide = Math.max(HISTORY / 4, values.length) - 1;
  svg.setAttribute('viewBox', '0 0 ' + wide + ' 100');
  svg.setAttribute('preserveAspectRatio', 'none');
  if (!svg.firstChild) {
    for (const style of ['base', 'drawn']) {
      svg.append(document.createElementNS('http://www.w3.org/2000/svg', 'path'));
      svg.lastChild.setAttribute('class', style);
    }
  }
  const most = Math.max(1e-9, ...known);
  let drawn = '', gap = true;
  values.forEach((value, at) => {
    if (value == null) { gap = true; return; }
    const point = (wide - values.length + 1 + at) + ' ' + (96 - 90 * value / most).toFixed(1);
    // A line of no length is a dot.
    drawn += gap ? 'M' + point + 'L' + point : 'L' + point;
    gap = false;
  });
  svg.firstChild.setAttribute('d', 'M0 99L' + wide + ' 99');
  svg.lastChild.setAttribute('d', drawn);
  $(id + '-span').textContent = known.length > 1 ? ', last ' + span(values.length) : '';
}
function remember(list, value) {
  list.push(value == null ? null : value);
  if (list.length > HISTORY) list.shift();
}

function alarms(told) {
  const lines = told.rows.map((row) => [row.level, row.what, row.to_do, row.under, row.alert]);
  if (told.beyond) lines.push(['warn', 'And ' + told.beyond + ' more.', 'Mend these first.', []]);
  if (!lines.length) lines.push(['good', 'Nothing is wrong.', 'All nodes answer.', []]);
  const box = $('alarms');
  while (box.children.length > lines.length) box.lastChild.remove();
  lines.forEach(([level, what, to_do, under, alert], at) => {
    const one = box.children[at] || box.appendChild(make('div', {}, make('b'), ' ', make('span'), make('ul')));
    const [head, , advice, list] = one.childNodes;
    const style = 'alarm ' + level;
    if (one.className !== style) one.className = style;
    tell(head, what);
    tell(advice, to_do);
    const title = alert ? 'Alert of Prometheus: ' + plain(alert) : '';
    if (one.title !== title) one.title = title;
    list.hidden = !under.length;
    while (list.children.length > under.length) list.lastChild.remove();
    under.forEach((text, line) => tell(list.children[line] || list.appendChild(make('li')), text));
  });
  // Spoken when something else is wrong, and not when a number of seconds grows.
  const spoken = plain(lines.map(([, what, , under]) => [what, ...under].join(' ')).join(' '));
  const kind = spoken.replace(/\d+/g, '');
  if (kind !== spoken_kind) { spoken_kind = kind; $('spoken').textContent = spoken; }
  document.title = (told.rows.length ? '(' + (told.rows.length + told.beyond) + ') ' : '') + 'Polyclave';
}

function sees(node, names) {
  const box = make('span');
  const told = names.filter((name) => name !== node.node).map((name) => {
    const there = node.sees.includes(name);
    const why = (node.why_missing || {})[name];
    const mark = make('span', { class: 'mark ' + (there ? 'good' : 'bad') }, (there ? '✓\u00a0' : '✕\u00a0') + name);
    if (why) mark.title = plain(why);
    return [mark, (there ? '+' : '-') + name];
  });
  told.forEach(([mark], at) => box.append(at ? '  ' : '', mark));
  return [told.map(([, text]) => text).join(' '), 'whole', box];
}

function state(node) {
  if (node.gone) return ['gone since ' + span(node.gone.seconds), 'bad'];
  if (node.answer_ms == null) return ['asked', 'soft'];
  if (node.quarantined) return ['quarantine', 'bad'];
  if (!node.set_up || !node.prepared) return ['preparing', 'warn'];
  if (node.ready === false) return ['not ready', 'bad'];
  if (node.not_told) return ['answers', ''];
  return ['ready', 'good'];
}

function audit(node) {
  if (!node.audit) return [node.not_told ? 'not told' : DASH, 'soft whole'];
  const { number, hash, contradiction, failure } = node.audit;
  if (contradiction) return ['CONTRADICTS: ' + contradiction, 'bad whole'];
  if (failure) return ['cannot be written', 'bad whole'];
  if (number == null) return ['no log', 'soft whole'];
  const shown = 'line ' + group(number) + ' · ' + hash;
  return [shown, 'whole', make('span', {}, 'line ' + group(number) + ' ', make('code', { class: 'soft' }, hash), ' ', make('span', { class: 'good' }, 'agrees'))];
}

function nodes(told) {
  const names = [...new Set(told.nodes.map((node) => node.node))];
  const alike = told.nodes.every((node) => node.duty === told.nodes[0].duty);
  const n = [, , , 'n', 'n', 'n', 'n', 'n'];
  rows('nodes', n, told.nodes.map((node) => {
    const duty = alike ? '' : node.duty;
    const name = [node.name + node.address + duty, 'name whole', make('span', {}, node.name, ' ', make('span', { class: 'soft mono' }, node.address), duty ? make('span', { class: 'soft' }, ' ' + duty) : '')];
    const is = state(node);
    if (node.gone || node.answer_ms == null) {
      return [name, [is[0], is[1] + ' whole'], [node.gone ? node.gone.why : '', 'soft whole'], DASH, DASH, DASH, DASH, DASH, [DASH, 'soft']];
    }
    const late = node.asked_ms > 2000 ? [span(Math.floor(node.asked_ms / 1000)) + ' late', 'warn'] : node.answer_ms.toFixed(1) + ' ms';
    const figures = node.not_told ? ['not told', 'not told', 'not told'].map((text) => [text, 'soft'])
      : [rate(node.rate), within(node.p50), within(node.p99)];
    return [name, [is[0], is[1] + ' whole'], sees(node, names), late, ...figures, group(node.keys), audit(node)];
  }), 'no node');
}

function protocol(cluster) {
  const on = { on: ['on', 'good'], off: ['off while a node is missing', 'bad'], none: ['not by this protocol', 'soft'] }[cluster.correction] || ['not told', 'soft'];
  const told = [
    ['Protocol', cluster.protocol, 'name'],
    ['Promise', cluster.promise, ''],
    ['Correction', on[0], on[1]],
    ['Corrupt nodes', 'at most ' + cluster.threshold + ' of ' + cluster.nodes, ''],
    ['Needed', cluster.needed + ' of ' + cluster.nodes + ' nodes for a request', ''],
    ['Cluster', cluster.id.slice(0, 16), 'mono'],
    ['Asked as', cluster.client, ''],
  ];
  const list = $('protocol');
  told.forEach(([term, text, style], at) => {
    const dd = list.children[2 * at + 1] || (list.append(make('dt', {}, term), make('dd')), list.lastChild);
    dd.className = style;
    if (dd.textContent !== text) dd.textContent = text;
  });
}

function keys(told) {
  const kinds = new Map();
  const report = told.keys;
  for (const { kind, state, keys } of report ? report.counts : []) {
    const row = kinds.get(kind) || kinds.set(kind, [0, 0, 0]).get(kind);
    row[STATES.indexOf(state)] += keys;
  }
  const untold = 'not told: no node lets this client watch (right observe)';
  rows('keys', [, 'n', 'n', 'n'], [...kinds].map(([kind, counts]) =>
    [kind, ...counts.map((count, at) => [count ? group(count) : DASH, !count ? 'soft' : at === 2 ? 'bad' : at ? 'warn' : ''])]), report ? 'no keys yet' : untold);
  $('keys-note').textContent = report ? 'Every version counts. As ' + told.keys_of + ' has them, counted in ' + report.took_ms + ' ms, ' + report.age + ' s ago.' : '';
  rows('least', [, , 'n'], (report ? report.least : []).map((key) => {
    const left = Math.max(0, key.budget - key.spent), part = key.budget ? left / key.budget : 0;
    return [[keyed(key), 'name'], bar(part, part < 0.1 ? 'bad' : part < 0.25 ? 'warn' : ''), group(left)];
  }), report ? 'no active keys' : 'not told');
  rows('ending', [, , 'n'], (report ? report.ending : []).map((key) => {
    const left = key.at - told.now;
    return [[keyed(key), 'name'], key.removed ? 'removed' : 'only decrypts', [span(left), left < 7 * 86400 ? 'warn' : '']];
  }), report ? 'no key has an end' : 'not told');
}

function others(told) {
  rows('certificates', [, , 'n'], told.certificates.rows.map((one) => {
    const left = one.ends - told.now;
    return [one.of + ' ' + one.name, date(one.ends), [span(left), left < 2 * 86400 && one.of !== 'authority' ? 'bad' : one.soon ? 'warn' : '']];
  }), 'not told');
  $('certificates-note').textContent = told.certificates.beyond ? 'And ' + told.certificates.beyond + ' that end later.' : '';
  rows('stock', [, , 'n'], told.stock.map((kind) => {
    const part = (one) => one.level ? one.blocks / one.level : 1;
    const least = kind.nodes.reduce((a, b) => part(b) < part(a) ? b : a);
    const alike = kind.nodes.every((one) => one.blocks === least.blocks);
    const what = kind.kind === kind.ciphers ? kind.kind : kind.kind + ', ' + kind.ciphers;
    return [what, bar(part(least), part(least) < 0.1 ? 'bad' : part(least) < 0.25 ? 'warn' : ''),
      group(least.blocks) + ' of ' + group(least.level), alike ? 'all alike' : least.node];
  }), 'none: this protocol makes nothing ahead, or no node tells');
  rows('requests', [, 'n', 'n'], told.requests.rows.map((row) => [row.operation, rate(row.rate), group(row.total)]), 'none yet');
  rows('refusals', [, 'n'], told.refusals.map((row) => [
    [row.words, 'reason', make('span', { title: row.reason }, row.words)], [row.lately ? group(row.lately) : DASH, row.lately ? 'warn' : 'soft'],
    Object.entries(row.by).filter(([, count]) => count).map(([node, count]) => node + ': ' + group(count)).join(', '),
  ]), 'none');
  rows('faults', [, , 'n', 'n'], told.faults.map((row) => [[row.node, 'name'], row.by, [group(row.outvoted), row.outvoted ? 'bad' : ''], group(row.silent)]), 'none seen');
  $('gateway-section').hidden = !told.gateway;
  if (told.gateway) {
    rows('gateway', [, , 'n'], told.gateway.rows.map((row) => [row.api + ' ' + row.operation, row.outcome, group(row.total)]), 'nothing yet');
    $('gateway-note').textContent = told.gateway.with_nodes + ' requests are with the nodes, and ' + told.gateway.waiting + ' wait.';
  }
}

function show(told) {
  $('cluster').textContent = told.cluster.protocol + ', ' + told.cluster.nodes + ' nodes';
  alarms(told.alarms);
  nodes(told);
  protocol(told.cluster);
  keys(told);
  others(told);
  remember(rates, told.requests.rate);
  remember(latencies, told.requests.p99);
  $('rate').textContent = rate(told.requests.rate);
  $('p99').textContent = within(told.requests.p99);
  line('rate-line', rates);
  line('p99-line', latencies);
  live('live ' + new Date(told.now * 1000).toLocaleTimeString([], { hour12: false }), 'good');
}

function live(text, style) {
  $('live').textContent = text;
  $('live').className = 'pill ' + style;
  document.body.classList.toggle('stale', style === 'bad');
}

function ask_for_token(why) {
  token = '';
  $('main').hidden = true;
  $('ask').hidden = false;
  $('why').textContent = why;
  live('no token', '');
  $('token').focus();
}

// EventSource cannot send a header, so the stream is read here. An event ends with an empty line.
async function look() {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), SILENT_MS);
  try {
    const answer = await fetch('/ui/stream', { headers: { authorization: 'Bearer ' + token }, signal: stop.signal, cache: 'no-store' });
    if (answer.status === 401 || answer.status === 403) { ask_for_token((await answer.text()).trim()); return false; }
    if (!answer.ok) throw new Error((await answer.text()).trim());
    $('ask').hidden = true;
    $('main').hidden = false;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let waiting = ''; ;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('the stream ended');
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENT_MS);
      waiting += value;
      const events = waiting.split('\n\n');
      waiting = events.pop();
      const newest = events.filter((event) => event.startsWith('data: ')).pop();
      if (newest) { show(JSON.parse(newest.slice(6))); retry_ms = 1000; }
    }
  } catch (error) {
    const why = error.name === 'AbortError' ? 'nothing came for ' + SILENT_MS / 1000 + ' s' : error.message;
    live('stream lost: ' + why + '; again in ' + retry_ms / 1000 + ' s', 'bad');
    return true;
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

let looking = false;
async function keep_looking() {
  if (looking) return;
  looking = true;
  while (await look()) {
    await new Promise((go) => setTimeout(go, retry_ms));
    retry_ms = Math.min(2 * retry_ms, 16000);
  }
  looking = false;
}

let page = 0;
async function find(to) {
  page = to;
  $('found').textContent = 'asking the nodes';
  try {
    const query = '?part=' + encodeURIComponent($('part').value) + '&page=' + page;
    const answer = await fetch('/ui/keys' + query, { headers: { authorization: 'Bearer ' + token }, cache: 'no-store' });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const told = await answer.json();
    $('found-table').hidden = false;
    $('found').textContent = group(told.found) + ' found' + (told.pages > 1 ? ', page ' + (page + 1) + ' of ' + told.pages : '') +
      (told.missing.length ? '; not asked: ' + told.missing.join(', ') : '');
    $('before').hidden = page === 0;
    $('next').hidden = page + 1 >= told.pages;
    rows('found-rows', [, , , , , 'n'], told.rows.map((key) => [
      [keyed(key), 'name whole'], key.label || DASH, key.cipher + ' ' + key.modes.join(' '),
      [key.state, key.state === 'active' ? 'good' : key.state === 'compromised' ? 'bad' : 'warn'],
      key.ends ? date(key.ends) + ', removed' : key.expires ? date(key.expires) : DASH, group(key.budget), key.at.join(', '),
    ]), 'no key that this token may list');
  } catch (error) {
    $('found').textContent = error.message;
  }
}

$('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  token = $('token').value.trim();
  $('token').value = '';
  $('why').textContent = '';
  keep_looking();
});
$('find').addEventListener('submit', (event) => { event.preventDefault(); find(0); });
$('before').addEventListener('click', () => find(page - 1));
$('next').addEventListener('click', () => find(page + 1));
if (token) keep_looking(); else ask_for_token('');

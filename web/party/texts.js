// Everything the page says, in every language it speaks. {names} are filled in; a test compares the languages' keys.

export const TEXTS = {
  en: {
    kicker: "A study that never sees your number",
    language: "Language",
    promiseHead: "What happens to your value",
    promise:
      "Your value stays on this device. It is turned into two keys that look random; each of two independent servers gets one. Only both together can count, and what they publish is blurred: whatever you give, every published result would have been almost as likely (at most {factor} times more or less likely) without you. If both servers worked together against the rules, they could read your value.",
    many: "One person is protected for {count} values. More values of one person are protected less.",
    detailsHead: "Servers, digest and privacy in detail",
    server0: "First server",
    server1: "Second server",
    digest: "Digest of the study",
    epsilon: "Privacy (epsilon)",
    epsilonValue: "{total} in all: {curve} for the curve, {reserve} kept for further statistics",
    epsilonWaves: "at most {total} in all: {curve} for the wave in which you take part, {pooled} for waves pooled later",
    scale: "Scale",
    scaleValue: "{size} steps from {first} to {last} {unit}",
    strata: "Groups",
    checkedHead: "Checked",
    checkedYes: "yes: the servers refuse values that are none, without reading any",
    checkedNo: "no: the servers trust that keys are made as they should be",
    hashHint:
      "This page is one file. Whoever gave it to you can tell its SHA-256; a copy with the same SHA-256 does the same.",
    valuesHead: "Your values",
    oneValue: "One value",
    aFile: "A file with many values (CSV)",
    valueLabel: "Value",
    valueLabelUnit: "Value, in {unit}",
    group: "Group",
    look: "Show what would be sent",
    chooseFile: "Choose a CSV file",
    dropHere: "or drop it here. It is read on this device and not uploaded.",
    valueColumn: "Column with the values",
    groupColumn: "Column with the groups",
    onlyColumn: "the only column",
    previewHead: "What would be sent",
    valueOne: "1 value",
    valueMany: "{count} values",
    counts:
      "{values}: {below} below and {above} above the scale are moved to its ends; {missing} empty rows are left out. {bytes} go to each server.",
    histogramTitle: "Your values, as only you see them",
    histogramDescription:
      "Number of your values in each part of the scale, up to the value written below it. {values}; the most in one part is {most}.",
    upTo: "up to",
    number: "number",
    sendHead: "Take part",
    token: "Your token (from your invitation)",
    consent: "I agree to send {values} in this form, once, for this study with epsilon {epsilon}.",
    send: "Send",
    progressHead: "Sending",
    progressText:
      "{done} of {count} values are stored at both servers. You can leave this page open and do something else.",
    doneHead: "Done",
    doneText: "Both servers have stored {values}.",
    receiptText:
      "Save the receipt: with it and your token you can take your values back until the study is sealed. Until you forget it, this browser keeps it too. It holds no value.",
    saveReceipt: "Save receipt",
    withdraw: "Take my values back",
    forget: "Forget the receipt here",
    sureWithdraw: "Both servers will erase {values}. You can send other values afterwards.",
    yesWithdraw: "Yes, take them back",
    sureForget:
      "Without the receipt the values cannot be taken back, and this browser would not notice if you sent them a second time.",
    yesForget: "Yes, forget it",
    no: "No",
    withdrawnText: "Both servers have erased {values}. You can send others.",
    resumed: "An upload was interrupted and goes on.",
    resumeToken:
      "An upload of {values} was interrupted. Open your invitation again, or type your token, to go on with it.",
    goOn: "Go on",
    unfinished: "A withdrawal or an upload is not finished. Type your token to bring it to its end.",
    footer: "No cookies, nobody else is contacted.",
    checking: "Asking both servers about the study …",
    closed: "The study takes no values now (state: {state}).",
    // What was refused, and what to do
    refused: "Nothing was sent.",
    badCampaign: "The study's description cannot be used by this page: {field}.",
    unknownScheme: "This page cannot make keys of kind “{scheme}”. Use the command line, fss-dealer.",
    unknownKem:
      "This study requires encryption that also withstands quantum computers ({kem}), and browsers do not have it. Use the command line, fss-dealer.",
    noEncryption:
      "This browser is too old: it lacks the encryption (X25519) that keeps everybody but the right server from reading what you send. Use a newer browser or the command line, fss-dealer.",
    noCampaign: "Server {server} did not describe the study.",
    swapped:
      "The servers are in the wrong order: what should be server {server} is the other one. Do not use this page.",
    otherCampaign:
      "Server {server} describes another study than this page: {found} instead of {expected}. Do not use this page; ask whoever gave it to you.",
    unreachable:
      "Server {server} cannot be reached. Is this device online? For addresses inside your own network the browser may ask for permission first.",
    "not-an-answer": "Server {server} answered what is no answer of this study.",
    serverSays: "Server {server}: {detail} [{code}]",
    takenBack: "What had arrived of it is withdrawn at both servers.",
    notTakenBack:
      "What had arrived could not be withdrawn yet. This page remembers it: send again, or take your values back, and it begins with that.",
    otherValues: "Other values were sent from this browser before. Take those back first.",
    otherToken: "What was sent from this browser was sent with another token. Use that one to go on.",
    otherTab: "Another tab of this browser is at work with this study. Wait for its end.",
    insecure: "Open this page from https or as a local file: only then can it keep your receipt safely.",
    noStorage:
      "This browser does not let the page keep a receipt (private window?). Without one a value could count twice.",
    badNumber: "Row {row}: “{value}” is not a number.",
    badInteger: "Row {row}: “{value}” is not a whole number.",
    badDate: "Row {row}: “{value}” is not a date like 2026-03-31.",
    badStratum: "Row {row}: “{value}” is not one of the study's groups.",
    decimalComma: "Row {row}: “{value}” has a decimal comma. Write numbers with a point, like 7.5.",
    openQuote: "The file ends inside a quoted cell.",
    noValues: "There is no value in it.",
    notUtf8: "The file is not text in UTF-8. Save it as “CSV UTF-8”.",
    internal: "Something unexpected went wrong on this page: {detail}",
  },
  de: {
    kicker: "Eine Studie, die Ihre Zahl nie sieht",
    language: "Sprache",
    promiseHead: "Was mit Ihrem Wert geschieht",
    promise:
      "Ihr Wert bleibt auf diesem Gerät. Aus ihm werden zwei Schlüssel, die wie Zufall aussehen; jeder von zwei unabhängigen Servern bekommt einen. Nur beide zusammen können zählen, und was sie veröffentlichen, ist verrauscht: Was immer Sie angeben, jedes veröffentlichte Ergebnis wäre ohne Sie fast ebenso wahrscheinlich gewesen (höchstens {factor}-mal mehr oder weniger). Würden beide Server gemeinsam gegen die Regeln arbeiten, könnten sie Ihren Wert lesen.",
    many: "Eine Person ist für {count} Werte geschützt. Mehr Werte einer Person sind weniger geschützt.",
    detailsHead: "Server, Prüfsumme und Datenschutz im Einzelnen",
    server0: "Erster Server",
    server1: "Zweiter Server",
    digest: "Prüfsumme der Studie",
    epsilon: "Datenschutz (Epsilon)",
    epsilonValue: "{total} insgesamt: {curve} für die Kurve, {reserve} für weitere Statistiken",
    epsilonWaves: "höchstens {total} insgesamt: {curve} für Ihre Welle, {pooled} für später zusammengefasste Wellen",
    scale: "Skala",
    scaleValue: "{size} Stufen von {first} bis {last} {unit}",
    strata: "Gruppen",
    checkedHead: "Geprüft",
    checkedYes: "ja: Die Server weisen ab, was kein Wert ist, ohne einen zu lesen",
    checkedNo: "nein: Die Server vertrauen darauf, dass Schlüssel richtig gemacht sind",
    hashHint:
      "Diese Seite ist eine einzige Datei. Wer sie Ihnen gab, kann ihre SHA-256-Summe nennen; eine Kopie mit derselben Summe tut dasselbe.",
    valuesHead: "Ihre Werte",
    oneValue: "Ein Wert",
    aFile: "Eine Datei mit vielen Werten (CSV)",
    valueLabel: "Wert",
    valueLabelUnit: "Wert, in {unit}",
    group: "Gruppe",
    look: "Zeigen, was gesendet würde",
    chooseFile: "CSV-Datei auswählen",
    dropHere: "oder hier ablegen. Sie wird auf diesem Gerät gelesen und nicht hochgeladen.",
    valueColumn: "Spalte mit den Werten",
    groupColumn: "Spalte mit den Gruppen",
    onlyColumn: "die einzige Spalte",
    previewHead: "Was gesendet würde",
    valueOne: "1 Wert",
    valueMany: "{count} Werte",
    counts:
      "{values}: {below} unter und {above} über der Skala werden an ihre Enden gesetzt; {missing} leere Zeilen entfallen. {bytes} gehen an jeden Server.",
    histogramTitle: "Ihre Werte, wie nur Sie sie sehen",
    histogramDescription:
      "Anzahl Ihrer Werte in jedem Teil der Skala, bis zu dem Wert, der darunter steht. {values}; die meisten in einem Teil sind {most}.",
    upTo: "bis",
    number: "Anzahl",
    sendHead: "Teilnehmen",
    token: "Ihr Zugangscode (aus Ihrer Einladung)",
    consent: "Ich bin einverstanden, {values} in dieser Form einmal für diese Studie mit Epsilon {epsilon} zu senden.",
    send: "Senden",
    progressHead: "Wird gesendet",
    progressText:
      "{done} von {count} Werten liegen bei beiden Servern. Sie können diese Seite offen lassen und etwas anderes tun.",
    doneHead: "Fertig",
    doneText: "Beide Server haben {values} gespeichert.",
    receiptText:
      "Speichern Sie die Quittung: Mit ihr und Ihrem Zugangscode können Sie Ihre Werte zurücknehmen, bis die Studie abgeschlossen ist. Bis Sie sie vergessen lassen, behält auch dieser Browser sie. Sie enthält keinen Wert.",
    saveReceipt: "Quittung speichern",
    withdraw: "Meine Werte zurücknehmen",
    forget: "Quittung hier vergessen",
    sureWithdraw: "Beide Server löschen {values}. Danach können Sie andere senden.",
    yesWithdraw: "Ja, zurücknehmen",
    sureForget:
      "Ohne die Quittung können die Werte nicht zurückgenommen werden, und dieser Browser würde nicht merken, wenn Sie sie ein zweites Mal senden.",
    yesForget: "Ja, vergessen",
    no: "Nein",
    withdrawnText: "Beide Server haben {values} gelöscht. Sie können andere senden.",
    resumed: "Eine Übertragung wurde unterbrochen und geht weiter.",
    resumeToken:
      "Eine Übertragung ({values}) wurde unterbrochen. Öffnen Sie Ihre Einladung noch einmal oder geben Sie Ihren Zugangscode ein, um fortzufahren.",
    goOn: "Fortfahren",
    unfinished:
      "Eine Rücknahme oder Übertragung ist nicht beendet. Geben Sie Ihren Zugangscode ein, um sie zu Ende zu bringen.",
    footer: "Keine Cookies, niemand sonst wird kontaktiert.",
    checking: "Beide Server werden nach der Studie gefragt …",
    closed: "Die Studie nimmt zurzeit keine Werte an (Zustand: {state}).",
    refused: "Es wurde nichts gesendet.",
    badCampaign: "Diese Seite kann mit der Beschreibung der Studie nichts anfangen: {field}.",
    unknownScheme: "Diese Seite kann keine Schlüssel der Art „{scheme}“ machen. Nehmen Sie das Programm fss-dealer.",
    unknownKem:
      "Diese Studie verlangt eine Verschlüsselung, die auch Quantencomputern standhält ({kem}), und Browser haben sie nicht. Nehmen Sie das Programm fss-dealer.",
    noEncryption:
      "Dieser Browser ist zu alt: Ihm fehlt die Verschlüsselung (X25519), durch die nur der richtige Server lesen kann, was Sie senden. Nehmen Sie einen neueren Browser oder das Programm fss-dealer.",
    noCampaign: "Server {server} hat die Studie nicht beschrieben.",
    swapped:
      "Die Server sind vertauscht: Was Server {server} sein sollte, ist der andere. Benutzen Sie diese Seite nicht.",
    otherCampaign:
      "Server {server} beschreibt eine andere Studie als diese Seite: {found} statt {expected}. Benutzen Sie diese Seite nicht; fragen Sie, wer sie Ihnen gab.",
    unreachable:
      "Server {server} ist nicht erreichbar. Ist dieses Gerät online? Bei Adressen im eigenen Netz fragt der Browser womöglich erst um Erlaubnis.",
    "not-an-answer": "Server {server} hat geantwortet, was keine Antwort dieser Studie ist.",
    serverSays: "Server {server}: {detail} [{code}]",
    takenBack: "Was davon angekommen war, ist bei beiden Servern zurückgenommen.",
    notTakenBack:
      "Was angekommen war, konnte noch nicht zurückgenommen werden. Diese Seite merkt es sich: Senden Sie noch einmal oder nehmen Sie Ihre Werte zurück, dann beginnt sie damit.",
    otherValues: "Von diesem Browser wurden schon andere Werte gesendet. Nehmen Sie diese zuerst zurück.",
    otherToken: "Von diesem Browser wurde mit einem anderen Zugangscode gesendet. Nehmen Sie diesen, um fortzufahren.",
    otherTab: "Ein anderer Tab dieses Browsers arbeitet gerade an dieser Studie. Warten Sie, bis er fertig ist.",
    insecure:
      "Öffnen Sie diese Seite über https oder als lokale Datei: Nur dann kann sie Ihre Quittung sicher aufbewahren.",
    noStorage:
      "Dieser Browser lässt die Seite keine Quittung aufbewahren (privates Fenster?). Ohne sie könnte ein Wert doppelt zählen.",
    badNumber: "Zeile {row}: „{value}“ ist keine Zahl.",
    badInteger: "Zeile {row}: „{value}“ ist keine ganze Zahl.",
    badDate: "Zeile {row}: „{value}“ ist kein Datum wie 2026-03-31.",
    badStratum: "Zeile {row}: „{value}“ ist keine Gruppe der Studie.",
    decimalComma: "Zeile {row}: „{value}“ hat ein Dezimalkomma. Schreiben Sie Zahlen mit Punkt, wie 7.5.",
    openQuote: "Die Datei endet mitten in einer Zelle in Anführungszeichen.",
    noValues: "Es ist kein Wert darin.",
    notUtf8: "Die Datei ist kein Text in UTF-8. Speichern Sie sie als „CSV UTF-8“.",
    internal: "Auf dieser Seite ist etwas Unerwartetes schiefgegangen: {detail}",
  },
};

export function say(language, key, about = {}) {
  const texts = TEXTS[language];
  const values = () => (about.count === 1 ? texts.valueOne : texts.valueMany.replace("{count}", about.count));
  const filled = (blank, name) => (name === "values" ? values() : name in about ? String(about[name]) : blank);
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, filled);
}

// Everything the page says while all goes well: one row a text, in English, German and French. {names} are filled in.
// problem_texts.js has what went wrong. Tests compare the languages.

export const LANGUAGES = { en: "English", de: "Deutsch", fr: "Français" };

export const SCREEN_TEXTS = {
  language: ["Language", "Sprache", "Langue"],
  kicker: [
    "A study that does not see your number",
    "Eine Studie, die Ihre Zahl nicht sieht",
    "Une étude qui ne voit pas votre nombre",
  ],
  footer: [
    "No cookies. This page contacts only the study’s two servers.",
    "Keine Cookies. Diese Seite spricht nur mit den zwei Servern der Studie.",
    "Pas de cookies. Cette page ne contacte que les deux serveurs de l’étude.",
  ],
  step: ["Step {step} of {steps}", "Schritt {step} von {steps}", "Étape {step} sur {steps}"],
  back: ["Back", "Zurück", "Retour"],

  loadingHead: ["One moment", "Einen Augenblick", "Un instant"],
  checking: [
    "Asking both servers about the study …",
    "Beide Server werden nach der Studie gefragt …",
    "Les deux serveurs sont interrogés …",
  ],
  slowServer: [
    "A server has not answered yet. Please wait a little longer.",
    "Ein Server hat noch nicht geantwortet. Bitte warten Sie noch etwas.",
    "Un serveur n’a pas encore répondu. Veuillez patienter encore un peu.",
  ],

  studyHead: ["About this study", "Über diese Studie", "À propos de cette étude"],
  organiser: ["Organised by", "Verantwortlich", "Organisée par"],
  contact: ["Contact", "Kontakt", "Contact"],
  promiseSecret: [
    "Nobody sees your number. This device turns it into two keys, and each key alone looks random.",
    "Niemand sieht Ihre Zahl. Dieses Gerät macht aus ihr zwei Schlüssel, und jeder für sich sieht wie Zufall aus.",
    "Personne ne voit votre nombre. Cet appareil en fait deux clés, et chacune, seule, semble aléatoire.",
  ],
  promiseTwo: [
    "Two independent servers receive one key each. Only both together, against the rules, could read your number.",
    "Zwei unabhängige Server bekommen je einen Schlüssel. Nur beide zusammen könnten Ihre Zahl lesen, gegen die Regeln.",
    "Deux serveurs indépendants reçoivent chacun une clé. Seuls les deux ensemble, contre les règles, pourraient lire votre nombre.",
  ],
  promiseBack: [
    "You can withdraw it until the study is complete.",
    "Sie können sie zurücknehmen, bis die Studie abgeschlossen ist.",
    "Vous pouvez le retirer jusqu’à la fin de l’étude.",
  ],
  begin: ["Enter my number", "Meine Zahl eingeben", "Saisir mon nombre"],
  beginFile: [
    "I have a file with many values",
    "Ich habe eine Datei mit vielen Werten",
    "J’ai un fichier avec plusieurs valeurs",
  ],
  detailsHead: [
    "Privacy, servers and digest in detail",
    "Datenschutz, Server und Prüfsumme im Einzelnen",
    "Confidentialité, serveurs et empreinte en détail",
  ],
  promise: [
    "Published results are blurred with random noise: each is almost equally likely with or without your value (at most {factor} times more or less).",
    "Veröffentlichte Ergebnisse sind verrauscht: Jedes ist mit und ohne Ihren Wert fast gleich wahrscheinlich (höchstens {factor}-mal mehr oder weniger).",
    "Les résultats publiés sont brouillés par un bruit aléatoire : chacun est presque aussi probable avec ou sans votre valeur (au plus {factor} fois plus ou moins).",
  ],
  many: [
    "One person is protected for {count} values; more are protected less.",
    "Eine Person ist für {count} Werte geschützt, für mehr Werte weniger.",
    "Une personne est protégée pour {count} valeurs, et moins au-delà.",
  ],
  server0: ["First server", "Erster Server", "Premier serveur"],
  server1: ["Second server", "Zweiter Server", "Second serveur"],
  digest: ["Digest of the study", "Prüfsumme der Studie", "Empreinte de l’étude"],
  epsilon: ["Privacy (epsilon)", "Datenschutz (Epsilon)", "Confidentialité (epsilon)"],
  epsilonValue: [
    "{total} in all: {curve} for the curve, {reserve} kept for further statistics",
    "{total} insgesamt: {curve} für die Kurve, {reserve} für weitere Statistiken",
    "{total} au total : {curve} pour la courbe, {reserve} pour d’autres statistiques",
  ],
  epsilonWaves: [
    "at most {total} in all: {curve} for the wave in which you take part, {pooled} for waves pooled later, {reserve} kept for further statistics",
    "höchstens {total} insgesamt: {curve} für Ihre Welle, {pooled} für später zusammengefasste Wellen, {reserve} für weitere Statistiken",
    "au plus {total} au total : {curve} pour votre vague, {pooled} pour les vagues regroupées ensuite, {reserve} pour d’autres statistiques",
  ],
  scale: ["Scale", "Skala", "Échelle"],
  scaleValue: [
    "{size} steps from {first} to {last} {unit}",
    "{size} Stufen von {first} bis {last} {unit}",
    "{size} paliers de {first} à {last} {unit}",
  ],
  strata: ["Groups", "Gruppen", "Groupes"],
  checkedHead: ["Checked", "Geprüft", "Vérification"],
  checkedYes: [
    "yes: the servers reject keys of invalid values without reading a value",
    "ja: Die Server weisen Schlüssel ungültiger Werte ab, ohne Werte zu lesen",
    "oui : les serveurs rejettent les clés non valides sans lire de valeur",
  ],
  checkedNo: [
    "no: the servers trust that keys are made correctly",
    "nein: Die Server vertrauen darauf, dass Schlüssel richtig gemacht sind",
    "non : les serveurs supposent que les clés sont correctes",
  ],
  hashHint: [
    "This page is one file: compare its SHA-256 with the published one.",
    "Diese Seite ist eine Datei: Vergleichen Sie ihre SHA-256-Summe mit der veröffentlichten.",
    "Cette page est un fichier : comparez son SHA-256 avec celui qui a été publié.",
  ],
  beforeHead: [
    "I have already taken part on this device",
    "Ich habe auf diesem Gerät schon teilgenommen",
    "J’ai déjà participé sur cet appareil",
  ],
  beforeText: [
    "Enter the token of your invitation to see your receipt, to resume or to withdraw.",
    "Geben Sie den Zugangscode Ihrer Einladung ein, um Ihre Quittung zu sehen, fortzufahren oder zurückzunehmen.",
    "Saisissez le code de votre invitation pour voir votre reçu, reprendre ou retirer.",
  ],
  beforeOne: ["Contribution {number}", "Beitrag {number}", "Contribution {number}"],
  recall: ["Show my contribution", "Meinen Beitrag zeigen", "Voir ma contribution"],
  interruptedBefore: [
    "An upload from this device was interrupted. Open its invitation again, or enter its token below, to resume or withdraw it.",
    "Eine Übertragung von diesem Gerät wurde unterbrochen. Öffnen Sie ihre Einladung noch einmal oder geben Sie unten ihren Zugangscode ein, um sie fortzusetzen oder zurückzunehmen.",
    "Un envoi depuis cet appareil a été interrompu. Ouvrez à nouveau son invitation ou saisissez son code ci-dessous pour le reprendre ou le retirer.",
  ],

  enterHead: ["Your number", "Ihre Zahl", "Votre nombre"],
  valueLabel: ["Value", "Wert", "Valeur"],
  valueLabelUnit: ["Value, in {unit}", "Wert, in {unit}", "Valeur, en {unit}"],
  rangeHint: ["From {first} to {last} {unit}", "Von {first} bis {last} {unit}", "De {first} à {last} {unit}"],
  group: ["Your group", "Ihre Gruppe", "Votre groupe"],
  look: ["Review", "Prüfen", "Vérifier"],
  useEnd: ["Send {end} instead", "Stattdessen {end} senden", "Envoyer {end} à la place"],
  byHand: ["I have one value only", "Ich habe nur einen Wert", "Je n’ai qu’une valeur"],
  fileHead: ["Your file", "Ihre Datei", "Votre fichier"],
  chooseFile: ["Choose a CSV file", "CSV-Datei auswählen", "Choisir un fichier CSV"],
  otherFile: ["Choose another file", "Andere Datei auswählen", "Choisir un autre fichier"],
  dropHere: [
    "or drop it here. It is read on this device and not uploaded.",
    "oder hier ablegen. Sie wird auf diesem Gerät gelesen und nicht hochgeladen.",
    "ou déposez-le ici. Il est lu sur cet appareil et n’est pas envoyé.",
  ],
  reading: ["Reading the file …", "Die Datei wird gelesen …", "Lecture du fichier …"],
  fileRead: [
    "{name}: {rows} rows, {columns} columns",
    "{name}: {rows} Zeilen, {columns} Spalten",
    "{name} : {rows} lignes, {columns} colonnes",
  ],
  latin1: [
    "The file is not UTF-8 and was read as Latin-1.",
    "Die Datei ist nicht UTF-8 und wurde als Latin-1 gelesen.",
    "Le fichier n’est pas en UTF-8 ; il a été lu comme Latin-1.",
  ],
  firstRowNames: [
    "The first row holds the names of the columns",
    "Die erste Zeile enthält die Namen der Spalten",
    "La première ligne contient les noms des colonnes",
  ],
  valueColumn: [
    "Which column holds the values?",
    "In welcher Spalte stehen die Werte?",
    "Quelle colonne contient les valeurs ?",
  ],
  groupColumn: [
    "Which column holds the groups?",
    "In welcher Spalte stehen die Gruppen?",
    "Quelle colonne contient les groupes ?",
  ],
  columnNumber: ["Column {number}", "Spalte {number}", "Colonne {number}"],
  fitsScale: ["{percent} % fit the scale", "{percent} % passen zur Skala", "{percent} % correspondent à l’échelle"],
  fitsGroups: [
    "{percent} % are groups of the study",
    "{percent} % sind Gruppen der Studie",
    "{percent} % sont des groupes de l’étude",
  ],
  allowEnds: [
    "Yes, send the ends of the scale in the place of these values",
    "Ja, an Stelle dieser Werte die Enden der Skala senden",
    "Oui, envoyer les extrémités de l’échelle à la place de ces valeurs",
  ],

  reviewHead: ["Is this right?", "Stimmt das?", "Est-ce correct ?"],
  youSend: ["You send {value}", "Sie senden {value}", "Vous envoyez {value}"],
  youSendGroup: [
    "You send {value}, group “{group}”",
    "Sie senden {value}, Gruppe „{group}“",
    "Vous envoyez {value}, groupe « {group} »",
  ],
  countedAs: [
    "It is counted at the step {label} of the scale.",
    "Er zählt bei der Stufe {label} der Skala.",
    "Elle est comptée au palier {label} de l’échelle.",
  ],
  markerTitle: [
    "Your value on the scale from {first} to {last}",
    "Ihr Wert auf der Skala von {first} bis {last}",
    "Votre valeur sur l’échelle de {first} à {last}",
  ],
  tableRead: ["Rows read", "Gelesene Zeilen", "Lignes lues"],
  tableEmpty: ["Without a value, left out", "Ohne Wert, entfallen", "Sans valeur, ignorées"],
  tableOff: [
    "Off the scale, sent as its ends",
    "Außerhalb der Skala, als deren Enden gesendet",
    "Hors de l’échelle, envoyées comme ses extrémités",
  ],
  tableSent: ["To be sent", "Zu senden", "À envoyer"],
  offRows: ["Off the scale: {list}", "Außerhalb der Skala: {list}", "Hors de l’échelle : {list}"],
  offRow: ["row {row}: {value}", "Zeile {row}: {value}", "ligne {row} : {value}"],
  commaRead: [
    "A comma was read as the decimal mark.",
    "Ein Komma wurde als Dezimalzeichen gelesen.",
    "La virgule a été lue comme séparateur décimal.",
  ],
  valueOne: ["1 value", "1 Wert", "1 valeur"],
  valueMany: ["{count} values", "{count} Werte", "{count} valeurs"],
  histogramTitle: [
    "Your values, as only you see them",
    "Ihre Werte, wie nur Sie sie sehen",
    "Vos valeurs, que vous seul voyez",
  ],
  histogramDescription: [
    "Number of your values in each part of the scale: {values}, at most {most} in one part.",
    "Anzahl Ihrer Werte in jedem Teil der Skala: {values}, höchstens {most} in einem Teil.",
    "Nombre de vos valeurs dans chaque partie de l’échelle : {values}, au plus {most} par partie.",
  ],
  upTo: ["up to", "bis", "jusqu’à"],
  number: ["number", "Anzahl", "nombre"],
  token: [
    "Your token (from your invitation)",
    "Ihr Zugangscode (aus Ihrer Einladung)",
    "Votre code (dans votre invitation)",
  ],
  consent: [
    "I agree to send {values} once, in this form, for this study with epsilon {epsilon}.",
    "Ich bin einverstanden, {values} einmal in dieser Form für diese Studie mit Epsilon {epsilon} zu senden.",
    "J’accepte d’envoyer {values} une fois, sous cette forme, pour cette étude avec epsilon {epsilon}.",
  ],
  send: ["Send", "Senden", "Envoyer"],
  edit: ["Change it", "Ändern", "Modifier"],

  sendingHead: ["Sending", "Wird gesendet", "Envoi en cours"],
  resumed: [
    "An upload was interrupted and is resumed.",
    "Eine unterbrochene Übertragung wird fortgesetzt.",
    "Un envoi interrompu est repris.",
  ],
  progressText: [
    "{done} of {count} values are stored at both servers. Leave this page open.",
    "{done} von {count} Werten liegen bei beiden Servern. Lassen Sie diese Seite offen.",
    "{done} valeurs sur {count} sont enregistrées par les deux serveurs. Laissez cette page ouverte.",
  ],

  earlierHead: [
    "Was the earlier upload yours?",
    "War die frühere Übertragung Ihre?",
    "L’envoi précédent était-il le vôtre ?",
  ],
  earlierText: [
    "An earlier upload from this device is unfinished and may have reached the servers. If it was yours, it must be withdrawn first, so that you count once.",
    "Eine frühere Übertragung von diesem Gerät ist unvollständig und kann bei den Servern angekommen sein. Wenn es Ihre war, muss sie erst zurückgenommen werden, damit Sie nur einmal zählen.",
    "Un envoi précédent depuis cet appareil est inachevé et a pu parvenir aux serveurs. S’il était le vôtre, il doit d’abord être retiré, pour que vous ne comptiez qu’une fois.",
  ],
  earlierMine: [
    "Mine: withdraw it, then send",
    "Meine: zurücknehmen, dann senden",
    "Le mien : le retirer, puis envoyer",
  ],
  earlierOthers: [
    "Somebody else’s: send now",
    "Die einer anderen Person: jetzt senden",
    "Celui d’une autre personne : envoyer",
  ],

  doneHead: ["Thank you", "Vielen Dank", "Merci"],
  doneText: [
    "Both servers have stored {values}.",
    "Beide Server haben {values} gespeichert.",
    "Les deux serveurs ont enregistré {values}.",
  ],
  receiptText: [
    "Save the receipt: with it and your token you can withdraw until the study is complete. Keep it private: whoever has both could find your value by trying.",
    "Speichern Sie die Quittung: Mit ihr und Ihrem Zugangscode können Sie zurücknehmen, bis die Studie abgeschlossen ist. Halten Sie sie geheim: Wer beides hat, könnte Ihren Wert durch Probieren finden.",
    "Enregistrez le reçu : avec lui et votre code, vous pouvez retirer votre envoi jusqu’à la fin de l’étude. Gardez-le secret : avec les deux, on pourrait trouver votre valeur par essais.",
  ],
  keptWell: [
    "This browser keeps the receipt, too, until you delete it or clear this site’s data.",
    "Auch dieser Browser behält die Quittung, bis Sie sie oder die Daten dieser Seite löschen.",
    "Ce navigateur conserve aussi le reçu, jusqu’à ce que vous l’effaciez ou effaciez les données du site.",
  ],
  keptBadly: [
    "This browser keeps the receipt, too, but may delete it when space is short or after weeks without a visit. A private window deletes it when closed.",
    "Auch dieser Browser behält die Quittung, kann sie aber löschen, wenn Platz fehlt oder Sie wochenlang nicht hier waren. Ein privates Fenster löscht sie beim Schließen.",
    "Ce navigateur conserve aussi le reçu, mais peut l’effacer si la place manque ou après des semaines sans visite. Une fenêtre privée l’efface à sa fermeture.",
  ],
  saveReceipt: ["Save receipt", "Quittung speichern", "Enregistrer le reçu"],
  withdraw: ["Withdraw", "Zurücknehmen", "Retirer"],
  another: ["Somebody else on this device", "Jemand anderes an diesem Gerät", "Quelqu’un d’autre sur cet appareil"],
  anotherText: [
    "Another person can take part on this device. Your contribution and your receipt stay.",
    "Eine andere Person kann an diesem Gerät teilnehmen. Ihr Beitrag und Ihre Quittung bleiben.",
    "Une autre personne peut participer sur cet appareil. Votre contribution et votre reçu restent.",
  ],
  forgetHead: [
    "Delete the receipt from this device",
    "Quittung von diesem Gerät löschen",
    "Effacer le reçu de cet appareil",
  ],
  forgetText: [
    "Without it nothing can be withdrawn, and this browser would not notice a second upload of the same values.",
    "Ohne sie kann nichts zurückgenommen werden, und dieser Browser bemerkt es nicht, wenn Sie dieselben Werte noch einmal senden.",
    "Sans lui, rien ne peut être retiré, et ce navigateur ne remarquerait pas un second envoi des mêmes valeurs.",
  ],
  forget: ["Delete it", "Löschen", "Effacer"],
  doneClosed: [
    "The study takes no values now; withdrawing may be impossible.",
    "Die Studie nimmt zurzeit keine Werte an; Zurücknehmen ist vielleicht nicht möglich.",
    "L’étude n’accepte pas de valeurs actuellement ; un retrait est peut-être impossible.",
  ],
  doneSealed: [
    "The study is complete: your contribution counts and can no longer be withdrawn.",
    "Die Studie ist abgeschlossen: Ihr Beitrag zählt und kann nicht mehr zurückgenommen werden.",
    "L’étude est terminée : votre contribution compte et ne peut plus être retirée.",
  ],
  useInvitation: [
    "Continue with the other invitation",
    "Mit der anderen Einladung fortfahren",
    "Continuer avec l’autre invitation",
  ],

  withdrawHead: ["Withdraw?", "Zurücknehmen?", "Retirer ?"],
  sureWithdraw: [
    "Both servers will erase {values}. You can send again afterwards.",
    "Beide Server löschen {values}. Danach können Sie wieder senden.",
    "Les deux serveurs effaceront {values}. Vous pourrez ensuite envoyer à nouveau.",
  ],
  yesWithdraw: ["Yes, withdraw", "Ja, zurücknehmen", "Oui, retirer"],
  no: ["No, keep it", "Nein, behalten", "Non, conserver"],
  withdrawingText: ["Both servers are erasing it …", "Beide Server löschen …", "Les deux serveurs effacent …"],
  withdrawnHead: ["Withdrawn", "Zurückgenommen", "Retiré"],
  withdrawnText: [
    "Both servers have erased {values}.",
    "Beide Server haben {values} gelöscht.",
    "Les deux serveurs ont effacé {values}.",
  ],
  again: ["Send again", "Wieder senden", "Envoyer à nouveau"],
};

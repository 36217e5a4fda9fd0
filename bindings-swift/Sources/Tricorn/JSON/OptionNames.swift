/// Translates what the core says of the options of `auth` into their names here.
enum OptionNames {
    private static let names = [
        "application_type": "applicationType", "client_id": "clientID", "client_metadata_url": "clientMetadataURL",
        "client_name": "clientName", "client_secret": "clientSecret", "client_uri": "clientURI", "key_id": "keyID",
        "login_timeout": "loginTimeout", "no_browser": "noBrowser", "private_key": "privateKey",
        "redirect_port": "redirectPort", "redirect_uri": "redirectURI", "signing_algorithm": "signingAlgorithm",
    ]

    /// The message with these names. What others have said is quoted, and stays.
    static func here(_ message: String) -> String {
        guard message.contains("_") else { return message }
        var told = ""
        var word = ""
        var isQuoted = false
        var isEscaped = false
        for character in message {
            if !isQuoted, character.isLetter || character == "_" {
                word.append(character)
                continue
            }
            told += names[word] ?? word
            word = ""
            told.append(character)
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && character == "\\" && !isEscaped
        }
        return told + (names[word] ?? word)
    }
}
